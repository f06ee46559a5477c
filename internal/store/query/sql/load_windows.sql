SELECT pid, rid, tid, device, from_s, to_s, useful_us, wait_us, ratio
FROM load_windows
WHERE run = $1
ORDER BY pid, rid, tid, device, from_s
