SELECT finding, pid, func, call_path, kind, "role", cause, anomalies, lost_us, longest_us, worst_rank, worst_rank_lost_us, first_us, last_us, trend, example,
       waits, wait_ranks, waits_lost_us, before_us, after_us, rank_list::VARCHAR AS ranks, host_list::VARCHAR AS hosts, over_time::VARCHAR AS over_time
FROM findings
WHERE run = $1
ORDER BY finding
