SELECT pid, rid, event_id, hostname, func, entry, lost_time
FROM anomalies
WHERE run = $1 AND pid = $2 AND rid = $3 AND ev_step = $4 AND ev_row = $5
