-- The views of schema 1 with kind and why. New columns come last, as in stores
-- that can only add them there.

CREATE OR REPLACE VIEW all_executions AS
SELECT e.run, e.pid, e.rid, e.tid, e.ev_step, e.ev_row,
       coalesce(e.ev_text, e.rid || ':' || e.ev_step || ':' || e.ev_row) AS event_id,
       e.anomalous, e.fn, f.fid, f.name AS func, e.path, e.model, e.hostname, e.entry, e."exit",
       e.runtime_exclusive, e.runtime_total, e.lost_time, e.outlier_score, e.outlier_severity, e.status,
       e.io_step, e.io_step_tstart, e.io_step_tend, e.is_gpu_event, e.version, e.kind, e.why
FROM executions e JOIN functions f ON f.run = e.run AND f.pid = e.pid AND f.fn = e.fn;

CREATE OR REPLACE VIEW anomalies AS SELECT * EXCLUDE (anomalous) FROM all_executions WHERE anomalous;

CREATE OR REPLACE VIEW normalexecs AS SELECT * EXCLUDE (anomalous) FROM all_executions WHERE NOT anomalous;

CREATE OR REPLACE VIEW live_rollups AS -- anomalies that were not withdrawn, by function, call path, rank and kind
SELECT run, pid, fn, path, rid, min(hostname) AS hostname, count(*) AS anomalies, sum(lost_time)::BIGINT AS lost_us,
       sum(runtime_exclusive)::BIGINT AS anomalous_us, sum(outlier_severity) AS severity, max(outlier_score) AS score,
       min(entry) AS first_us, max("exit") AS last_us, coalesce(kind, '') AS kind
FROM executions
WHERE anomalous AND status IS DISTINCT FROM 'withdrawn'
GROUP BY run, pid, fn, path, rid, coalesce(kind, '');

CREATE OR REPLACE VIEW execution_documents AS
SELECT e.run, e.pid, e.rid, e.tid, e.ev_step, e.ev_row, e.ev_text, e.anomalous,
       coalesce(e.doc, (left(json_object(
           'algo_params', m.params,
           'call_stack', list_transform(e.call_stack, LAMBDA s : {
               'entry': e.entry + s."at", 'event_id': e.rid || ':' || (e.ev_step + s.step) || ':' || (e.ev_row + s."row"),
               'exit': coalesce(e.entry + s."at" + s.duration, 0), 'fid': n.fids[s.fn], 'func': n.names[s.fn], 'is_anomaly': s.anomalous}),
           'counter_events', list_transform(e.counter_events, LAMBDA s : {
               'counter_idx': s.idx, 'counter_name': s.name, 'counter_value': s."value",
               'pid': e.pid, 'rid': e.rid, 'tid': e.tid, 'ts': e.entry + s."at"}),
           'entry', e.entry,
           'event_id', e.rid || ':' || e.ev_step || ':' || e.ev_row,
           'event_window', {
               'comm_window': list_transform(e.comm_window, LAMBDA s : {
                   'bytes': s.bytes, 'execdata_key': e.rid || ':' || (e.ev_step + s.step) || ':' || (e.ev_row + s."row"),
                   'pid': e.pid, 'rid': e.rid, 'src': CASE WHEN s.received THEN s.partner ELSE e.rid END, 'tag': s.tag,
                   'tar': CASE WHEN s.received THEN e.rid ELSE s.partner END, 'tid': e.tid, 'timestamp': e.entry + s."at",
                   'type': CASE WHEN s.received THEN 'RECV' ELSE 'SEND' END}),
               'exec_window': list_transform(e.exec_window, LAMBDA s : {
                   'entry': e.entry + s."at", 'event_id': e.rid || ':' || (e.ev_step + s.step) || ':' || (e.ev_row + s."row"),
                   'exit': coalesce(e.entry + s."at" + s.duration, 0), 'fid': n.fids[s.fn], 'func': n.names[s.fn], 'is_anomaly': s.anomalous,
                   'parent_event_id': coalesce(e.rid || ':' || (e.ev_step + s.parent_step) || ':' || (e.ev_row + s.parent_row), 'root')})},
           'exit', e."exit",
           'fid', n.fids[e.fn],
           'func', n.names[e.fn],
           'gpu_location', e.gpu_location,
           'gpu_parent', CASE WHEN e.gpu_parent_stack IS NULL THEN to_json(e.gpu_parent_error) ELSE to_json({
               'call_stack': list_transform(e.gpu_parent_stack, LAMBDA s : {
                   'entry': e.entry + s."at", 'event_id': e.rid || ':' || (e.ev_step + s.step) || ':' || (e.ev_row + s."row"),
                   'exit': coalesce(e.entry + s."at" + s.duration, 0), 'fid': n.fids[s.fn], 'func': n.names[s.fn], 'is_anomaly': s.anomalous}),
               'event_id': e.rid || ':' || (e.ev_step + e.gpu_parent_stack[1].step) || ':' || (e.ev_row + e.gpu_parent_stack[1]."row"),
               'tid': e.gpu_parent_tid}) END,
           'hostname', e.hostname,
           'io_step', e.io_step,
           'io_step_tend', e.io_step_tend,
           'io_step_tstart', e.io_step_tstart,
           'is_gpu_event', e.is_gpu_event,
           'node_state', CASE WHEN e.sample IS NOT NULL THEN {'data': x.state, 'timestamp': x."timestamp"} END,
           'outlier_score', e.outlier_score,
           'outlier_severity', e.outlier_severity,
           'pid', e.pid,
           'rid', e.rid,
           'runtime_exclusive', e.runtime_exclusive,
           'runtime_total', e.runtime_total,
           'tid', e.tid,
           'version', e.version)::VARCHAR, -1)
           || CASE WHEN e.kind IS NOT NULL THEN ',"kind":' || to_json(e.kind) ELSE '' END
           || CASE WHEN e.lost_time <> 0 THEN ',"lost_time":' || e.lost_time ELSE '' END
           || CASE WHEN e.status IS NOT NULL THEN ',"status":' || to_json(e.status) ELSE '' END
           || CASE WHEN e.why IS NOT NULL THEN ',"why":' || to_json(e.why) ELSE '' END || '}')::JSON) AS doc
FROM executions e
JOIN function_names n ON n.run = e.run AND n.pid = e.pid
LEFT JOIN models m ON m.run = e.run AND m.pid = e.pid AND m.fn = e.fn AND m.model = e.model
LEFT JOIN samples x ON x.run = e.run AND x.pid = e.pid AND x.sample = e.sample;
