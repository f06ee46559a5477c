SELECT coalesce(max(greatest("exit", io_step_tend)), 0)::BIGINT AS "value"
FROM executions
WHERE run = $1
