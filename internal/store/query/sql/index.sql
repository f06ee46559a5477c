-- All executions that are kept, by what is asked of many of them at once.
SELECT e.pid, e.rid, e.tid, e.ev_step, e.ev_row, nullif(e.ev_text, '') AS ev_text, e.fn, e.path, e.entry, e."exit", e.runtime_exclusive, e.lost_time, e.io_step,
       e.is_gpu_event, coalesce(e.kind, '') AS kind, coalesce(e.status, '') AS status, e.anomalous, coalesce(l.issue, 0) AS issue,
       CASE WHEN l."role" = 'victim' THEN l.culprit_pid END AS culprit_pid, CASE WHEN l."role" = 'victim' THEN l.culprit_event_id END AS culprit_event_id,
       e.anomalous AND e.outlier_severity <> e.runtime_exclusive AS unlike
FROM executions e
LEFT JOIN links l ON l.run = $1 AND l.pid = e.pid AND l.rid = e.rid AND l.event_id = coalesce(nullif(e.ev_text, ''), e.rid || ':' || e.ev_step || ':' || e.ev_row)
WHERE e.run = $1
ORDER BY e.entry
LIMIT $2
