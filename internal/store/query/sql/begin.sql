SELECT min(entry) AS begin_us
FROM executions
WHERE run = $1
