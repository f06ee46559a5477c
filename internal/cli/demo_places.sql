SELECT pid, func, rid, hostname, lost_time, entry, event_id
FROM anomalies
WHERE status IS DISTINCT FROM 'withdrawn'
ORDER BY entry, pid, rid, event_id
