SELECT pid, rid, tid, event_id, hostname, func, path, kind, is_gpu_event, runtime_exclusive <> runtime_total AS calls,
       entry, "exit", runtime_exclusive, lost_time, status, children, usual_children,
       ev_step BETWEEN 0 AND io_step - 1 AS recorded, io_step_tend - io_step_tstart AS step_time,
       coalesce(why, '') LIKE $3 AS usual
FROM anomalies
WHERE run = $1 AND (status IS DISTINCT FROM 'provisional' OR $2)
