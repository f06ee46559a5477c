SELECT pid, rid, func, hostname, entry, exit, lost_time
FROM anomalies
WHERE exit >= $1 AND status IS DISTINCT FROM 'withdrawn'
ORDER BY exit, pid, rid, event_id
