SELECT run, pid, rid, tid, ev_step, ev_row, ev_text, coalesce(nullif(ev_text, ''), rid || ':' || ev_step || ':' || ev_row) AS event_id,
       anomalous, fn, path, hostname, entry, "exit", runtime_exclusive, runtime_total, lost_time, io_step, outlier_score, outlier_severity,
       status, is_gpu_event, kind
FROM executions
WHERE run = $1
ORDER BY entry
