SELECT max(io_step) AS step, max(greatest("exit", io_step_tend)) AS last_us
FROM executions
WHERE run = $1
