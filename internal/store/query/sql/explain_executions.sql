-- Of many, some of all times: the order is one in which nothing else is.
SELECT pid, rid, tid, event_id, fn, path, hostname, entry, "exit", io_step, is_gpu_event, func, anomalous, lost_time
FROM all_executions
WHERE run = $1 AND ($2::BOOLEAN IS NULL OR anomalous = $2::BOOLEAN) AND status IS DISTINCT FROM 'withdrawn' /*where*/
ORDER BY /*lot*/, entry, event_id
LIMIT $3
