SELECT pid, rid, event_id, finding, "role", culprit_pid, culprit_event_id, late_rid AS late_rank, hops, waits, wait_ranks, waits_lost_us
FROM links
WHERE run = $1 AND pid = $2 AND event_id = $3 AND ($4::INTEGER IS NULL OR rid = $4::INTEGER)
