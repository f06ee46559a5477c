SELECT max(io_step) AS step
FROM executions
WHERE run = $1
