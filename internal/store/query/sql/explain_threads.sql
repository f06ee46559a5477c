SELECT DISTINCT pid, tid
FROM executions
WHERE run = $1 AND NOT is_gpu_event
