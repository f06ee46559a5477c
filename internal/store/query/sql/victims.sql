SELECT pid, event_id
FROM links
WHERE run = $1 AND culprit_pid = $2 AND culprit_event_id = $3 AND "role" = 'victim'
ORDER BY pid, rid, event_id
