SELECT pid, path, count(*) AS kept
FROM executions
WHERE run = $1 AND ($2::INTEGER IS NULL OR pid = $2::INTEGER)
GROUP BY pid, path
