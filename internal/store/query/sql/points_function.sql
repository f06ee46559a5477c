SELECT event_id, entry, runtime_exclusive, lost_time, rid, hostname, status
FROM anomalies
WHERE run = $1 AND pid = $2 AND fn = $3 AND status IS DISTINCT FROM 'withdrawn'
ORDER BY lost_time DESC, entry, event_id
LIMIT $4
