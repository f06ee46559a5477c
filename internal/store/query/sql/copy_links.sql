SELECT run, pid, rid, event_id, issue, "role", culprit_pid, culprit_event_id
FROM links
WHERE run = $1
