SELECT pid, rid, event_id, finding, "role", culprit_pid, culprit_event_id, late_rid AS late_rank, hops, waits, wait_ranks, waits_lost_us
FROM links
WHERE run = $1
ORDER BY pid, rid, event_id
