SELECT e.pid, e.rid, e.tid, e.event_id, e.fn, e.path, CASE WHEN e.hostname = 'Unknown' THEN '' ELSE e.hostname END AS hostname, f.func,
       e.entry, e."exit", e.runtime_exclusive, e.lost_time, e.io_step,
       e.is_gpu_event, e.anomalous, e.status
FROM (
    SELECT *
    FROM (
        SELECT run, pid, rid, tid, ev_step, ev_row, ev_text, coalesce(nullif(ev_text, ''), rid || ':' || ev_step || ':' || ev_row) AS event_id, fn, path,
               hostname, entry, "exit", runtime_exclusive, lost_time, io_step, is_gpu_event, anomalous, status, kind, outlier_score,
               outlier_severity
        FROM executions
        WHERE run = $1
    ) a
    WHERE /*where*/
    ORDER BY /*order*/
    LIMIT $2
) e
JOIN (SELECT pid AS of_pid, fn AS of_fn, name AS func FROM functions WHERE run = $1) f ON f.of_pid = e.pid AND f.of_fn = e.fn
ORDER BY /*order*/
