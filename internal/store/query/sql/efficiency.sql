SELECT pid, entire, begin_us, from_s, to_s, ranks, parallel, load_balance, communication, slowest_rank, device_parallel, device_load_balance
FROM efficiency
WHERE run = $1
ORDER BY pid, entire DESC, from_s
