SELECT pid, rid, step, start_us, total_us, compute_us, communication_us, memory_us, exposed_communication_us, exposed_memory_us, overlap_us,
       idle_us, host_wait_us, kernel_wait_us, other_wait_us, streams::VARCHAR AS streams
FROM gpu_times
WHERE run = $1 AND CASE WHEN step IS NULL THEN 0 ELSE 1 END = $2 AND ($3 < 0 OR pid = $3 AND rid = $4)
ORDER BY pid, rid, step NULLS FIRST, start_us
