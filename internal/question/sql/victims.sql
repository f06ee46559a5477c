SELECT a.pid, a.rid, a.event_id, a.hostname, a.func, a.entry, a.lost_time
FROM links l
JOIN anomalies a ON a.run = l.run AND a.pid = l.pid AND a.rid = l.rid AND a.event_id = l.event_id
WHERE l.run = $1 AND l.culprit_pid = $2 AND l.culprit_event_id = $3 AND l."role" = 'victim'
ORDER BY a.lost_time DESC, a.pid, a.rid, a.ev_step, a.ev_row
LIMIT $4
