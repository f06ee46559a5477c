SELECT pid, rid, event_id, hostname, func, entry, lost_time
FROM anomalies
WHERE run = $1 AND pid = $2 AND event_id = $3
