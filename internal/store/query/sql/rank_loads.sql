SELECT pid, rid, tid, device, host, "role", peers, elapsed_us, useful_us, wait_us, sync_us, ratio, "pattern", from_s, to_s, saved_us,
       saved_share, NULL::VARCHAR AS windows, functions::VARCHAR AS functions
FROM rank_loads
WHERE run = $1
ORDER BY pid, rid, tid, device
