SELECT pid, tid, is_gpu_event, max(io_step) AS step
FROM executions
WHERE run = $1
GROUP BY pid, tid, is_gpu_event
