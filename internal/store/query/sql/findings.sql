SELECT finding, kind, form, status, severity, program, "function", call_path, "role", cause, ranks::VARCHAR AS ranks, hosts::VARCHAR AS
       hosts, from_s, to_s, calls, of_calls, expected_us, actual_us, period_s, lost_own_us, lost_caused_us, lost_us, share, confidence,
       summary, reason, examples::VARCHAR AS examples, longest_us, worst_rank, worst_rank_lost_us, first_us, last_us, trend,
       over_time::VARCHAR AS over_time, waits, wait_ranks, late
FROM findings
WHERE run = $1
ORDER BY finding
