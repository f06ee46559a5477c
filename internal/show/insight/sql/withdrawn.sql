SELECT pid, rid, count(*) AS withdrawn
FROM executions
WHERE run = $1 AND status = 'withdrawn'
GROUP BY pid, rid
