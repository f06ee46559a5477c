SELECT a.event_id, a.entry, a.runtime_exclusive, a.lost_time, a.rid, a.hostname, a.status
FROM (
    SELECT coalesce(nullif(ev_text, ''), rid || ':' || ev_step || ':' || ev_row) AS event_id, entry, runtime_exclusive, lost_time, rid, hostname, status
    FROM executions
    WHERE run = $1 AND pid = $4 AND fn = $5 AND anomalous
) a
JOIN links l ON l.run = $1 AND l.issue = $2 AND l.pid = $4 AND l.rid = a.rid AND l.event_id = a.event_id
ORDER BY a.lost_time DESC, a.entry, a.event_id
LIMIT $3
