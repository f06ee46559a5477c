SELECT min(entry) AS "value"
FROM executions
WHERE run = $1
