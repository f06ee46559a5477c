SELECT pid, rid, min(hostname) AS hostname
FROM executions
WHERE run = $1
GROUP BY pid, rid
