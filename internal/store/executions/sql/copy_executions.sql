SELECT e.pid, e.rid, e.tid, e.ev_step, e.ev_row, e.ev_text, e.fn, e.path, e.hostname, e.entry, e."exit", e.runtime_exclusive, e.runtime_total,
       e.lost_time, e.io_step, e.outlier_score, e.outlier_severity, e.kind, e.status, e.anomalous, e.is_gpu_event, l.finding,
       CASE WHEN l."role" = 'victim' THEN l.culprit_pid END AS culprit_pid,
       CASE WHEN l."role" = 'victim' THEN l.culprit_event_id END AS culprit_event_id
FROM (
    SELECT *, coalesce(nullif(ev_text, ''), rid || ':' || ev_step || ':' || ev_row) AS event_id
    FROM executions
    WHERE run = $1
) e
LEFT JOIN links l ON l.run = $1 AND l.pid = e.pid AND l.rid = e.rid AND l.event_id = e.event_id
ORDER BY e.entry, e.rid, e.ev_step, e.ev_row, e.ev_text
