SELECT pid, func, rid, hostname, lost_time, entry, event_id
FROM anomalies
WHERE entry >= $1 AND status IS DISTINCT FROM 'withdrawn'
ORDER BY lost_time DESC, entry, pid, rid, event_id
LIMIT 500
