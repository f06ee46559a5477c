-- The views of schema 1 with kind and why. New columns come last: so the views can
-- be replaced, and others' views of them stay.

CREATE OR REPLACE VIEW all_executions AS
SELECT e.run, e.pid, e.rid, e.tid, e.ev_step, e.ev_row,
       CASE WHEN e.ev_text = '' THEN e.rid::text || ':' || e.ev_step::text || ':' || e.ev_row::text ELSE e.ev_text END AS event_id,
       e.anomalous, e.fn, f.fid, f.name AS func, e.path, e.model, e.hostname, e.entry, e."exit",
       e.runtime_exclusive, e.runtime_total, e.lost_time, e.outlier_score, e.outlier_severity, e.status,
       e.io_step, e.io_step_tstart, e.io_step_tend, e.is_gpu_event, e.version, e.kind, (e.detail ->> 'why') COLLATE "C" AS why
FROM executions e LEFT JOIN functions f ON f.run = e.run AND f.pid = e.pid AND f.fn = e.fn;

CREATE OR REPLACE VIEW anomalies AS
SELECT run, pid, rid, tid, ev_step, ev_row, event_id, fn, fid, func, path, model, hostname, entry, "exit",
       runtime_exclusive, runtime_total, lost_time, outlier_score, outlier_severity, status,
       io_step, io_step_tstart, io_step_tend, is_gpu_event, version, kind, why
FROM all_executions WHERE anomalous;

CREATE OR REPLACE VIEW normalexecs AS
SELECT run, pid, rid, tid, ev_step, ev_row, event_id, fn, fid, func, path, model, hostname, entry, "exit",
       runtime_exclusive, runtime_total, lost_time, outlier_score, outlier_severity, status,
       io_step, io_step_tstart, io_step_tend, is_gpu_event, version, kind, why
FROM all_executions WHERE NOT anomalous;

CREATE OR REPLACE VIEW live_rollups AS -- anomalies that were not withdrawn, by function, call path, rank and kind
SELECT run, pid, fn, path, rid, min(hostname) AS hostname, count(*) AS anomalies, sum(lost_time)::BIGINT AS lost_us,
       sum(runtime_exclusive)::BIGINT AS anomalous_us, sum(outlier_severity) AS severity, max(outlier_score) AS score,
       min(entry) AS first_us, max("exit") AS last_us, coalesce(kind, '') AS kind
FROM executions
WHERE anomalous AND status IS DISTINCT FROM 'withdrawn'
GROUP BY run, pid, fn, path, rid, coalesce(kind, '');

CREATE OR REPLACE VIEW execution_documents AS
SELECT e.run, e.pid, e.rid, e.tid, e.ev_step, e.ev_row, nullif(e.ev_text, '') AS ev_text, e.anomalous,
       coalesce(e.doc, e.detail || jsonb_build_object(
           'algo_params', m.params::jsonb,
           'entry', e.entry,
           'event_id', CASE WHEN e.ev_text = '' THEN e.rid::text || ':' || e.ev_step::text || ':' || e.ev_row::text ELSE e.ev_text END,
           'exit', e."exit",
           'fid', f.fid,
           'func', f.name,
           'hostname', e.hostname,
           'io_step', e.io_step,
           'io_step_tend', e.io_step_tend,
           'io_step_tstart', e.io_step_tstart,
           'is_gpu_event', e.is_gpu_event,
           'node_state', CASE WHEN x.sample IS NOT NULL THEN jsonb_build_object('data', x.state, 'timestamp', x."timestamp") END,
           'outlier_score', e.outlier_score,
           'outlier_severity', e.outlier_severity,
           'pid', e.pid,
           'rid', e.rid,
           'runtime_exclusive', e.runtime_exclusive,
           'runtime_total', e.runtime_total,
           'tid', e.tid,
           'version', e.version)
           || CASE WHEN e.kind IS NOT NULL THEN jsonb_build_object('kind', e.kind) ELSE '{}' END
           || CASE WHEN e.lost_time <> 0 THEN jsonb_build_object('lost_time', e.lost_time) ELSE '{}' END
           || CASE WHEN e.status IS NOT NULL THEN jsonb_build_object('status', e.status) ELSE '{}' END) AS doc
FROM executions e
LEFT JOIN functions f ON f.run = e.run AND f.pid = e.pid AND f.fn = e.fn
LEFT JOIN models m ON m.run = e.run AND m.pid = e.pid AND m.fn = e.fn AND m.model = e.model
LEFT JOIN samples x ON x.run = e.run AND x.pid = e.pid AND x.sample = e.sample;
