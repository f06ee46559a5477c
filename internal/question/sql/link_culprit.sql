SELECT rid, hostname, func
FROM anomalies
WHERE run = $1 AND pid = $2 AND event_id = $3
