-- Views for queries. Every store has these views with these columns.
-- rank is another name of rid. New columns come last: PostgreSQL can add them to existing views only there.

CREATE OR REPLACE VIEW function_names AS -- names by number within a program
SELECT run, pid, list(fid ORDER BY fn) AS fids, list(name ORDER BY fn) AS names FROM functions GROUP BY run, pid;

CREATE OR REPLACE VIEW call_paths AS
SELECT p.run, p.pid, p.path, len(p.fns)::INTEGER AS depth,
       array_to_string(list_transform(p.fns, LAMBDA f : n.names[f]), ' > ') AS call_path
FROM paths p JOIN function_names n ON n.run = p.run AND n.pid = p.pid;

CREATE OR REPLACE VIEW all_executions AS
SELECT e.run, e.pid, e.rid, e.tid, e.ev_step, e.ev_row,
       coalesce(e.ev_text, e.rid || ':' || e.ev_step || ':' || e.ev_row) AS event_id,
       e.anomalous, e.fn, f.fid, f.name AS func, e.path, e.model, e.hostname, e.entry, e."exit",
       e.runtime_exclusive, e.runtime_total, e.lost_time, e.outlier_score, e.outlier_severity, e.status,
       e.io_step, e.io_step_tstart, e.io_step_tend, e.is_gpu_event, e.version, e.kind, e.why, e.children, e.usual_children,
       e.rid AS "rank"
FROM executions e JOIN functions f ON f.run = e.run AND f.pid = e.pid AND f.fn = e.fn;

CREATE OR REPLACE VIEW anomalies AS SELECT * EXCLUDE (anomalous) FROM all_executions WHERE anomalous;

CREATE OR REPLACE VIEW normalexecs AS SELECT * EXCLUDE (anomalous) FROM all_executions WHERE NOT anomalous;

CREATE OR REPLACE VIEW live_rollups AS -- anomalies except withdrawn ones, by function, call path, rank and kind
SELECT run, pid, fn, path, rid, min(hostname) AS hostname, count(*) AS anomalies, sum(lost_time)::BIGINT AS lost_us,
       sum(runtime_exclusive)::BIGINT AS anomalous_us, sum(outlier_severity) AS severity, max(outlier_score) AS score,
       min(entry) AS first_us, max("exit") AS last_us, coalesce(kind, '') AS kind, rid AS "rank"
FROM executions
WHERE anomalous AND status IS DISTINCT FROM 'withdrawn'
GROUP BY run, pid, fn, path, rid, coalesce(kind, '');

CREATE OR REPLACE VIEW frames AS -- of call stacks; depth 0 is the execution itself
SELECT run, pid, rid, tid, event_id, anomalous, depth, s.fn, n.fids[s.fn] AS fid, n.names[s.fn] AS func,
       rid || ':' || (ev_step + s.step) || ':' || (ev_row + s."row") AS frame_event_id,
       entry + s."at" AS entry, coalesce(entry + s."at" + s.duration, 0) AS "exit", s.anomalous AS is_anomaly, rid AS "rank"
FROM (SELECT e.run, e.pid, e.rid, e.tid, e.anomalous, e.ev_step, e.ev_row, e.entry,
             coalesce(e.ev_text, e.rid || ':' || e.ev_step || ':' || e.ev_row) AS event_id,
             unnest(e.call_stack) AS s, (generate_subscripts(e.call_stack, 1) - 1)::INTEGER AS depth
      FROM executions e)
JOIN function_names n USING (run, pid);

CREATE OR REPLACE VIEW window_calls AS -- around an execution, in order of entry
SELECT run, pid, rid, tid, event_id, anomalous, "position", s.fn, n.fids[s.fn] AS fid, n.names[s.fn] AS func,
       rid || ':' || (ev_step + s.step) || ':' || (ev_row + s."row") AS call_event_id,
       coalesce(rid || ':' || (ev_step + s.parent_step) || ':' || (ev_row + s.parent_row), 'root') AS parent_event_id,
       entry + s."at" AS entry, coalesce(entry + s."at" + s.duration, 0) AS "exit", s.anomalous AS is_anomaly, rid AS "rank"
FROM (SELECT e.run, e.pid, e.rid, e.tid, e.anomalous, e.ev_step, e.ev_row, e.entry,
             coalesce(e.ev_text, e.rid || ':' || e.ev_step || ':' || e.ev_row) AS event_id,
             unnest(e.exec_window) AS s, generate_subscripts(e.exec_window, 1)::INTEGER AS "position"
      FROM executions e)
JOIN function_names n USING (run, pid);

CREATE OR REPLACE VIEW messages AS -- of windows
SELECT run, pid, rid, tid, event_id, anomalous, "position", CASE WHEN s.received THEN 'RECV' ELSE 'SEND' END AS type,
       CASE WHEN s.received THEN s.partner ELSE rid END AS src, CASE WHEN s.received THEN rid ELSE s.partner END AS tar,
       s.bytes, s.tag, entry + s."at" AS "timestamp",
       rid || ':' || (ev_step + s.step) || ':' || (ev_row + s."row") AS execdata_key, ev_step, ev_row, rid AS "rank"
FROM (SELECT e.run, e.pid, e.rid, e.tid, e.anomalous, e.ev_step, e.ev_row, e.entry,
             coalesce(e.ev_text, e.rid || ':' || e.ev_step || ':' || e.ev_row) AS event_id,
             unnest(e.comm_window) AS s, generate_subscripts(e.comm_window, 1)::INTEGER AS "position"
      FROM executions e);

CREATE OR REPLACE VIEW counter_events AS
SELECT run, pid, rid, tid, event_id, anomalous, "position", s.idx AS counter_idx, s.name AS counter_name,
       s."value" AS counter_value, entry + s."at" AS ts, ev_step, ev_row, rid AS "rank"
FROM (SELECT e.run, e.pid, e.rid, e.tid, e.anomalous, e.ev_step, e.ev_row, e.entry,
             coalesce(e.ev_text, e.rid || ':' || e.ev_step || ':' || e.ev_row) AS event_id,
             unnest(e.counter_events) AS s, generate_subscripts(e.counter_events, 1)::INTEGER AS "position"
      FROM executions e);

CREATE OR REPLACE VIEW node_states AS
SELECT run, pid, rid, tid, event_id, anomalous, "timestamp", s.field, s."value", ev_step, ev_row, rid AS "rank"
FROM (SELECT e.run, e.pid, e.rid, e.tid, e.anomalous, e.ev_step, e.ev_row, n."timestamp",
             coalesce(e.ev_text, e.rid || ':' || e.ev_step || ':' || e.ev_row) AS event_id, unnest(n.state) AS s
      FROM executions e JOIN samples n ON n.run = e.run AND n.pid = e.pid AND n.sample = e.sample);

CREATE OR REPLACE VIEW func_stats AS
SELECT run, pid AS app, * EXCLUDE (run, pid) FROM profiles;

CREATE OR REPLACE VIEW ad_model AS
SELECT m.run, m.pid, f.fid, f.name AS func_name, m.fn, m.model AS version, v.params AS model
FROM final_models m
JOIN functions f ON f.run = m.run AND f.pid = m.pid AND f.fn = m.fn
LEFT JOIN models v ON v.run = m.run AND v.pid = m.pid AND v.fn = m.fn AND v.model = m.model;

-- The documents of the schema.

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
           || CASE WHEN e.children <> 0 THEN ',"children":' || e.children ELSE '' END
           || CASE WHEN e.kind IS NOT NULL THEN ',"kind":' || to_json(e.kind) ELSE '' END
           || CASE WHEN e.lost_time <> 0 THEN ',"lost_time":' || e.lost_time ELSE '' END
           || CASE WHEN e.status IS NOT NULL THEN ',"status":' || to_json(e.status) ELSE '' END
           || CASE WHEN e.usual_children <> 0 THEN ',"usual_children":' || e.usual_children ELSE '' END
           || CASE WHEN e.why IS NOT NULL THEN ',"why":' || to_json(e.why) ELSE '' END || '}')::JSON) AS doc,
       e.rid AS "rank"
FROM executions e
JOIN function_names n ON n.run = e.run AND n.pid = e.pid
LEFT JOIN models m ON m.run = e.run AND m.pid = e.pid AND m.fn = e.fn AND m.model = e.model
LEFT JOIN samples x ON x.run = e.run AND x.pid = e.pid AND x.sample = e.sample;

CREATE OR REPLACE VIEW anomalies_json AS SELECT * EXCLUDE (anomalous) FROM execution_documents WHERE anomalous;

CREATE OR REPLACE VIEW normalexecs_json AS SELECT * EXCLUDE (anomalous) FROM execution_documents WHERE NOT anomalous;

CREATE OR REPLACE VIEW metadata_json AS
SELECT run, pid, rid, tid, io_step, json_object('descr', descr, 'pid', pid, 'rid', rid, 'tid', tid, 'value', "value") AS doc, rid AS "rank"
FROM metadata;

CREATE OR REPLACE VIEW func_stats_json AS
SELECT run, pid, fid, json_object(
    'anomaly_metrics', CASE WHEN anomalies THEN json_object(
        'anomaly_count', json_object('accumulate', anomaly_accumulate, 'count', anomaly_count, 'kurtosis', anomaly_kurtosis, 'maximum', anomaly_maximum, 'mean', anomaly_mean, 'minimum', anomaly_minimum, 'skewness', anomaly_skewness, 'stddev', anomaly_stddev),
        'first_io_step', first_io_step, 'last_io_step', last_io_step, 'max_timestamp', max_timestamp, 'min_timestamp', min_timestamp,
        'score', json_object('accumulate', score_accumulate, 'count', score_count, 'kurtosis', score_kurtosis, 'maximum', score_maximum, 'mean', score_mean, 'minimum', score_minimum, 'skewness', score_skewness, 'stddev', score_stddev),
        'severity', json_object('accumulate', severity_accumulate, 'count', severity_count, 'kurtosis', severity_kurtosis, 'maximum', severity_maximum, 'mean', severity_mean, 'minimum', severity_minimum, 'skewness', severity_skewness, 'stddev', severity_stddev)) END,
    'app', pid, 'fid', fid, 'fname', fname,
    'runtime_profile', json_object(
        'exclusive_runtime', json_object('accumulate', exclusive_accumulate, 'count', exclusive_count, 'kurtosis', exclusive_kurtosis, 'maximum', exclusive_maximum, 'mean', exclusive_mean, 'minimum', exclusive_minimum, 'skewness', exclusive_skewness, 'stddev', exclusive_stddev),
        'inclusive_runtime', json_object('accumulate', inclusive_accumulate, 'count', inclusive_count, 'kurtosis', inclusive_kurtosis, 'maximum', inclusive_maximum, 'mean', inclusive_mean, 'minimum', inclusive_minimum, 'skewness', inclusive_skewness, 'stddev', inclusive_stddev))) AS doc
FROM profiles;

CREATE OR REPLACE VIEW counter_stats_json AS
SELECT run, app AS pid, json_object('app', app, 'counter', counter, 'stats', json_object(
    'accumulate', accumulate, 'count', "count", 'kurtosis', kurtosis, 'maximum', maximum,
    'mean', mean, 'minimum', minimum, 'skewness', skewness, 'stddev', stddev)) AS doc
FROM counter_stats;

CREATE OR REPLACE VIEW ad_model_json AS
SELECT run, pid, fid, json_object('fid', fid, 'func_name', func_name, 'model', model, 'pid', pid) AS doc FROM ad_model;

CREATE OR REPLACE VIEW path_stats AS
SELECT s.run, s.pid, s.path, s.parent, p.depth, s.fn, f.fid, f.name AS func, s.calls, s.exclusive_us, p.call_path
FROM path_profiles s
JOIN call_paths p ON p.run = s.run AND p.pid = s.pid AND p.path = s.path
JOIN functions f ON f.run = s.run AND f.pid = s.pid AND f.fn = s.fn;
