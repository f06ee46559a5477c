SELECT DISTINCT e.pid, f.name
FROM executions e
JOIN functions f ON f.run = e.run AND f.pid = e.pid AND f.fn = e.fn
WHERE e.run = $1 AND e.is_gpu_event
