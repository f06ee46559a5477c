SELECT pid, operation, process_group, group_size, ranks_seen, bytes, dtype, calls, latency_sum_us, latency_max_us, skews, skew_sum_us,
       skew_max_us, last_ranks::VARCHAR AS last_ranks, bus_bandwidth
FROM collectives
WHERE run = $1
ORDER BY collective
