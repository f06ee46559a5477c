-- Views for queries. Every store has these views with these columns.
-- rank is another name of rid. New columns come last: existing views take them only there.
-- Functions are joined by LEFT JOIN although they always exist: PostgreSQL then knows that no row is lost, uses
-- indexes for lists with LIMIT, and omits joins that a query does not need.

CREATE OR REPLACE VIEW call_paths AS
SELECT p.run, p.pid, p.path, cardinality(p.fns) AS depth,
       coalesce((SELECT string_agg(f.name, ' > ' ORDER BY u.n)
                 FROM unnest(p.fns) WITH ORDINALITY AS u(fn, n)
                 JOIN functions f ON f.run = p.run AND f.pid = p.pid AND f.fn = u.fn), '') AS call_path
FROM paths p;

CREATE OR REPLACE VIEW all_executions AS
SELECT e.run, e.pid, e.rid, e.tid, e.ev_step, e.ev_row,
       CASE WHEN e.ev_text = '' THEN e.rid::text || ':' || e.ev_step::text || ':' || e.ev_row::text ELSE e.ev_text END AS event_id,
       e.anomalous, e.fn, f.fid, f.name AS func, e.path, e.model, e.hostname, e.entry, e."exit",
       e.runtime_exclusive, e.runtime_total, e.lost_time, e.outlier_score, e.outlier_severity, e.status,
       e.io_step, e.io_step_tstart, e.io_step_tend, e.is_gpu_event, e.version, e.kind, coalesce(e.why, e.detail ->> 'why') AS why,
       e.children, e.usual_children, e.rid AS "rank"
FROM executions e LEFT JOIN functions f ON f.run = e.run AND f.pid = e.pid AND f.fn = e.fn;

CREATE OR REPLACE VIEW anomalies AS
SELECT run, pid, rid, tid, ev_step, ev_row, event_id, fn, fid, func, path, model, hostname, entry, "exit",
       runtime_exclusive, runtime_total, lost_time, outlier_score, outlier_severity, status,
       io_step, io_step_tstart, io_step_tend, is_gpu_event, version, kind, why, children, usual_children, "rank"
FROM all_executions WHERE anomalous;

CREATE OR REPLACE VIEW normalexecs AS
SELECT run, pid, rid, tid, ev_step, ev_row, event_id, fn, fid, func, path, model, hostname, entry, "exit",
       runtime_exclusive, runtime_total, lost_time, outlier_score, outlier_severity, status,
       io_step, io_step_tstart, io_step_tend, is_gpu_event, version, kind, why, children, usual_children, "rank"
FROM all_executions WHERE NOT anomalous;

CREATE OR REPLACE VIEW live_rollups AS -- anomalies except withdrawn ones, by function, call path, rank and kind
SELECT run, pid, fn, path, rid, min(hostname) AS hostname, count(*) AS anomalies, sum(lost_time)::BIGINT AS lost_us,
       sum(runtime_exclusive)::BIGINT AS anomalous_us, sum(outlier_severity) AS severity, max(outlier_score) AS score,
       min(entry) AS first_us, max("exit") AS last_us, coalesce(kind, '') AS kind, rid AS "rank"
FROM executions
WHERE anomalous AND status IS DISTINCT FROM 'withdrawn'
GROUP BY run, pid, fn, path, rid, coalesce(kind, '');

CREATE OR REPLACE VIEW frames AS -- of call stacks; depth 0 is the execution itself
SELECT e.run, e.pid, e.rid, e.tid,
       CASE WHEN e.ev_text = '' THEN e.rid::text || ':' || e.ev_step::text || ':' || e.ev_row::text ELSE e.ev_text END AS event_id,
       e.anomalous, (s.n - 1)::integer AS depth, f.fn, s.fid, s.func, s.event_id AS frame_event_id, s.entry, s."exit", s.is_anomaly,
       e.rid AS "rank"
FROM executions e
CROSS JOIN ROWS FROM (jsonb_to_recordset(e.detail -> 'call_stack') AS (
    entry bigint, event_id text COLLATE "C", "exit" bigint, fid bigint, func text COLLATE "C", is_anomaly boolean)
    ) WITH ORDINALITY AS s(entry, event_id, "exit", fid, func, is_anomaly, n)
LEFT JOIN functions f ON f.run = e.run AND f.pid = e.pid AND f.fid = s.fid AND f.name = s.func
WHERE e.block IS NULL
UNION ALL
SELECT e.run, e.pid, e.rid, e.tid,
       CASE WHEN e.ev_text = '' THEN e.rid::text || ':' || e.ev_step::text || ':' || e.ev_row::text ELSE e.ev_text END AS event_id,
       e.anomalous, (s."position" - 1)::integer AS depth, s.fn, f.fid, f.name AS func,
       (e.rid::text || ':' || (e.ev_step + s.step)::text || ':' || (e.ev_row + s."row")::text) COLLATE "C" AS frame_event_id,
       e.entry + s."at" AS entry, CASE WHEN s.flags & 2 = 0 THEN e.entry + s."at" + s."time" ELSE 0 END AS "exit", s.flags & 1 <> 0 AS is_anomaly,
       e.rid AS "rank"
FROM executions e
JOIN blocks b ON b.run = e.run AND b.block = e.block
CROSS JOIN block_frames(b, e.slot) s
LEFT JOIN functions f ON f.run = e.run AND f.pid = e.pid AND f.fn = s.fn;

CREATE OR REPLACE VIEW window_calls AS -- around an execution, in order of entry
SELECT e.run, e.pid, e.rid, e.tid,
       CASE WHEN e.ev_text = '' THEN e.rid::text || ':' || e.ev_step::text || ':' || e.ev_row::text ELSE e.ev_text END AS event_id,
       e.anomalous, s.n::integer AS "position", f.fn, s.fid, s.func, s.event_id AS call_event_id, s.parent_event_id,
       s.entry, s."exit", s.is_anomaly,
       e.rid AS "rank"
FROM executions e
CROSS JOIN ROWS FROM (jsonb_to_recordset(e.detail -> 'event_window' -> 'exec_window') AS (
    entry bigint, event_id text COLLATE "C", "exit" bigint, fid bigint, func text COLLATE "C", is_anomaly boolean, parent_event_id text COLLATE "C")
    ) WITH ORDINALITY AS s(entry, event_id, "exit", fid, func, is_anomaly, parent_event_id, n)
LEFT JOIN functions f ON f.run = e.run AND f.pid = e.pid AND f.fid = s.fid AND f.name = s.func
WHERE e.block IS NULL
UNION ALL
SELECT e.run, e.pid, e.rid, e.tid,
       CASE WHEN e.ev_text = '' THEN e.rid::text || ':' || e.ev_step::text || ':' || e.ev_row::text ELSE e.ev_text END AS event_id,
       e.anomalous, s."position"::integer AS "position", s.fn, f.fid, f.name AS func,
       (e.rid::text || ':' || (e.ev_step + s.step)::text || ':' || (e.ev_row + s."row")::text) COLLATE "C" AS call_event_id,
       CASE WHEN s.flags & 4 = 0 THEN (e.rid::text || ':' || (e.ev_step + s.parent_step)::text || ':' || (e.ev_row + s.parent_row)::text) COLLATE "C"
            ELSE 'root' END AS parent_event_id,
       e.entry + s."at" AS entry, CASE WHEN s.flags & 2 = 0 THEN e.entry + s."at" + s."time" ELSE 0 END AS "exit", s.flags & 1 <> 0 AS is_anomaly,
       e.rid AS "rank"
FROM executions e
JOIN blocks b ON b.run = e.run AND b.block = e.block
CROSS JOIN block_calls(b, e.slot) s
LEFT JOIN functions f ON f.run = e.run AND f.pid = e.pid AND f.fn = s.fn;

CREATE OR REPLACE VIEW messages AS -- of windows
SELECT e.run, e.pid, e.rid, e.tid,
       CASE WHEN e.ev_text = '' THEN e.rid::text || ':' || e.ev_step::text || ':' || e.ev_row::text ELSE e.ev_text END AS event_id,
       e.anomalous, s.n::integer AS "position", s.type, s.src, s.tar, s.bytes, s.tag, s."timestamp", s.execdata_key, e.ev_step, e.ev_row,
       e.rid AS "rank"
FROM executions e
CROSS JOIN ROWS FROM (jsonb_to_recordset(e.detail -> 'event_window' -> 'comm_window') AS (
    bytes numeric(20, 0), execdata_key text COLLATE "C", src integer, tag integer, tar integer, "timestamp" bigint, type text COLLATE "C")
    ) WITH ORDINALITY AS s(bytes, execdata_key, src, tag, tar, "timestamp", type, n)
WHERE e.block IS NULL
UNION ALL
SELECT e.run, e.pid, e.rid, e.tid,
       CASE WHEN e.ev_text = '' THEN e.rid::text || ':' || e.ev_step::text || ':' || e.ev_row::text ELSE e.ev_text END AS event_id,
       e.anomalous, s."position"::integer AS "position", CASE WHEN s.flags & 1 = 0 THEN 'SEND' ELSE 'RECV' END COLLATE "C" AS type,
       CASE WHEN s.flags & 1 = 0 THEN e.rid ELSE e.rid + s.partner END AS src, CASE WHEN s.flags & 1 = 0 THEN e.rid + s.partner ELSE e.rid END AS tar,
       CASE WHEN s.flags & 2 = 0 THEN s.bytes END::numeric(20, 0) AS bytes, s.tag, e.entry + s."at" AS "timestamp",
       (e.rid::text || ':' || (e.ev_step + s.step)::text || ':' || (e.ev_row + s."row")::text) COLLATE "C" AS execdata_key, e.ev_step, e.ev_row,
       e.rid AS "rank"
FROM executions e
JOIN blocks b ON b.run = e.run AND b.block = e.block
CROSS JOIN block_messages(b, e.slot) s;

CREATE OR REPLACE VIEW counter_events AS
SELECT e.run, e.pid, e.rid, e.tid,
       CASE WHEN e.ev_text = '' THEN e.rid::text || ':' || e.ev_step::text || ':' || e.ev_row::text ELSE e.ev_text END AS event_id,
       e.anomalous, s.n::integer AS "position", s.counter_idx, s.counter_name, s.counter_value, s.ts, e.ev_step, e.ev_row,
       e.rid AS "rank"
FROM executions e
CROSS JOIN ROWS FROM (jsonb_to_recordset(e.detail -> 'counter_events') AS (
    counter_idx bigint, counter_name text COLLATE "C", counter_value numeric(20, 0), ts bigint)
    ) WITH ORDINALITY AS s(counter_idx, counter_name, counter_value, ts, n)
WHERE e.block IS NULL
UNION ALL
SELECT e.run, e.pid, e.rid, e.tid,
       CASE WHEN e.ev_text = '' THEN e.rid::text || ':' || e.ev_step::text || ':' || e.ev_row::text ELSE e.ev_text END AS event_id,
       e.anomalous, s."position"::integer AS "position", s.idx AS counter_idx, s.name AS counter_name, s."value"::numeric(20, 0) AS counter_value,
       e.entry + s."at" AS ts, e.ev_step, e.ev_row,
       e.rid AS "rank"
FROM executions e
JOIN blocks b ON b.run = e.run AND b.block = e.block
CROSS JOIN block_counters(b, e.slot) s;

CREATE OR REPLACE VIEW node_states AS
SELECT e.run, e.pid, e.rid, e.tid,
       CASE WHEN e.ev_text = '' THEN e.rid::text || ':' || e.ev_step::text || ':' || e.ev_row::text ELSE e.ev_text END AS event_id,
       e.anomalous, x."timestamp", s.field, s."value", e.ev_step, e.ev_row, e.rid AS "rank"
FROM executions e
JOIN samples x ON x.run = e.run AND x.pid = e.pid AND x.sample = e.sample
CROSS JOIN jsonb_to_recordset(x.state) AS s(field text COLLATE "C", "value" numeric(20, 0));

CREATE OR REPLACE VIEW func_stats AS
SELECT run, pid AS app, fn, fid, fname, anomalies, first_io_step, last_io_step, min_timestamp, max_timestamp,
       anomaly_accumulate, anomaly_count, anomaly_kurtosis, anomaly_maximum, anomaly_mean, anomaly_minimum, anomaly_skewness, anomaly_stddev,
       score_accumulate, score_count, score_kurtosis, score_maximum, score_mean, score_minimum, score_skewness, score_stddev,
       severity_accumulate, severity_count, severity_kurtosis, severity_maximum, severity_mean, severity_minimum, severity_skewness, severity_stddev,
       exclusive_accumulate, exclusive_count, exclusive_kurtosis, exclusive_maximum, exclusive_mean, exclusive_minimum, exclusive_skewness, exclusive_stddev,
       inclusive_accumulate, inclusive_count, inclusive_kurtosis, inclusive_maximum, inclusive_mean, inclusive_minimum, inclusive_skewness, inclusive_stddev
FROM profiles;

CREATE OR REPLACE VIEW ad_model AS
SELECT m.run, m.pid, f.fid, f.name AS func_name, m.fn, m.model AS version, v.params::jsonb AS model
FROM final_models m
LEFT JOIN functions f ON f.run = m.run AND f.pid = m.pid AND f.fn = m.fn
LEFT JOIN models v ON v.run = m.run AND v.pid = m.pid AND v.fn = m.fn AND v.model = m.model;

-- The documents of the schema.

CREATE OR REPLACE VIEW execution_documents AS
SELECT e.run, e.pid, e.rid, e.tid, e.ev_step, e.ev_row, nullif(e.ev_text, '') AS ev_text, e.anomalous,
       coalesce(e.doc, coalesce(e.detail, '{"gpu_location": null, "gpu_parent": null}')
           || CASE WHEN e.block IS NULL THEN '{}' ELSE jsonb_build_object(
               'call_stack', (
               SELECT coalesce(jsonb_agg(jsonb_build_object('entry', e.entry + s."at", 'event_id', e.rid::text || ':' || (e.ev_step + s.step)::text || ':' || (e.ev_row + s."row")::text,
                   'exit', CASE WHEN s.flags & 2 = 0 THEN e.entry + s."at" + s."time" ELSE 0 END,
                   'fid', f.fid, 'func', f.name, 'is_anomaly', s.flags & 1 <> 0) ORDER BY s."position"), '[]')
                FROM block_frames(b, e.slot) s
                LEFT JOIN functions f ON f.run = e.run AND f.pid = e.pid AND f.fn = s.fn),
               'counter_events', (
               SELECT coalesce(jsonb_agg(jsonb_build_object(
                   'counter_idx', s.idx, 'counter_name', s.name, 'counter_value', s."value", 'pid', e.pid, 'rid', e.rid,
                   'tid', e.tid, 'ts', e.entry + s."at") ORDER BY s."position"), '[]')
                FROM block_counters(b, e.slot) s),
               'event_window', jsonb_build_object(
                   'comm_window', (
               SELECT coalesce(jsonb_agg(jsonb_build_object(
                   'bytes', CASE WHEN s.flags & 2 = 0 THEN s.bytes END, 'execdata_key', e.rid::text || ':' || (e.ev_step + s.step)::text || ':' || (e.ev_row + s."row")::text,
                   'pid', e.pid, 'rid', e.rid, 'src', CASE WHEN s.flags & 1 = 0 THEN e.rid ELSE e.rid + s.partner END, 'tag', s.tag,
                   'tar', CASE WHEN s.flags & 1 = 0 THEN e.rid + s.partner ELSE e.rid END, 'tid', e.tid, 'timestamp', e.entry + s."at",
                   'type', CASE WHEN s.flags & 1 = 0 THEN 'SEND' ELSE 'RECV' END) ORDER BY s."position"), '[]')
                FROM block_messages(b, e.slot) s),
                   'exec_window', (
               SELECT coalesce(jsonb_agg(jsonb_build_object('entry', e.entry + s."at", 'event_id', e.rid::text || ':' || (e.ev_step + s.step)::text || ':' || (e.ev_row + s."row")::text,
                   'exit', CASE WHEN s.flags & 2 = 0 THEN e.entry + s."at" + s."time" ELSE 0 END,
                   'fid', f.fid, 'func', f.name, 'is_anomaly', s.flags & 1 <> 0,
                   'parent_event_id', CASE WHEN s.flags & 4 = 0 THEN e.rid::text || ':' || (e.ev_step + s.parent_step)::text || ':' || (e.ev_row + s.parent_row)::text
                                      ELSE 'root' END) ORDER BY s."position"), '[]')
                FROM block_calls(b, e.slot) s
                LEFT JOIN functions f ON f.run = e.run AND f.pid = e.pid AND f.fn = s.fn))) END
           || jsonb_build_object(
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
           || CASE WHEN e.children <> 0 THEN jsonb_build_object('children', e.children) ELSE '{}' END
           || CASE WHEN e.usual_children <> 0 THEN jsonb_build_object('usual_children', e.usual_children) ELSE '{}' END
           || CASE WHEN e.kind IS NOT NULL THEN jsonb_build_object('kind', e.kind) ELSE '{}' END
           || CASE WHEN e.lost_time <> 0 THEN jsonb_build_object('lost_time', e.lost_time) ELSE '{}' END
           || CASE WHEN e.status IS NOT NULL THEN jsonb_build_object('status', e.status) ELSE '{}' END
           || CASE WHEN e.why IS NOT NULL THEN jsonb_build_object('why', e.why) ELSE '{}' END) AS doc,
       e.rid AS "rank"
FROM executions e
LEFT JOIN functions f ON f.run = e.run AND f.pid = e.pid AND f.fn = e.fn
LEFT JOIN models m ON m.run = e.run AND m.pid = e.pid AND m.fn = e.fn AND m.model = e.model
LEFT JOIN blocks b ON b.run = e.run AND b.block = e.block
LEFT JOIN samples x ON x.run = e.run AND x.pid = e.pid AND x.sample = e.sample;

CREATE OR REPLACE VIEW anomalies_json AS SELECT run, pid, rid, tid, ev_step, ev_row, ev_text, doc, "rank" FROM execution_documents WHERE anomalous;

CREATE OR REPLACE VIEW normalexecs_json AS SELECT run, pid, rid, tid, ev_step, ev_row, ev_text, doc, "rank" FROM execution_documents WHERE NOT anomalous;

CREATE OR REPLACE VIEW metadata_json AS
SELECT run, pid, rid, tid, io_step, jsonb_build_object('descr', descr, 'pid', pid, 'rid', rid, 'tid', tid, 'value', "value") AS doc, rid AS "rank"
FROM metadata;

CREATE OR REPLACE VIEW func_stats_json AS
SELECT run, pid, fid, jsonb_build_object(
    'anomaly_metrics', CASE WHEN anomalies THEN jsonb_build_object(
        'anomaly_count', jsonb_build_object('accumulate', anomaly_accumulate, 'count', anomaly_count, 'kurtosis', anomaly_kurtosis, 'maximum', anomaly_maximum, 'mean', anomaly_mean, 'minimum', anomaly_minimum, 'skewness', anomaly_skewness, 'stddev', anomaly_stddev),
        'first_io_step', first_io_step, 'last_io_step', last_io_step, 'max_timestamp', max_timestamp, 'min_timestamp', min_timestamp,
        'score', jsonb_build_object('accumulate', score_accumulate, 'count', score_count, 'kurtosis', score_kurtosis, 'maximum', score_maximum, 'mean', score_mean, 'minimum', score_minimum, 'skewness', score_skewness, 'stddev', score_stddev),
        'severity', jsonb_build_object('accumulate', severity_accumulate, 'count', severity_count, 'kurtosis', severity_kurtosis, 'maximum', severity_maximum, 'mean', severity_mean, 'minimum', severity_minimum, 'skewness', severity_skewness, 'stddev', severity_stddev)) END,
    'app', pid, 'fid', fid, 'fname', fname,
    'runtime_profile', jsonb_build_object(
        'exclusive_runtime', jsonb_build_object('accumulate', exclusive_accumulate, 'count', exclusive_count, 'kurtosis', exclusive_kurtosis, 'maximum', exclusive_maximum, 'mean', exclusive_mean, 'minimum', exclusive_minimum, 'skewness', exclusive_skewness, 'stddev', exclusive_stddev),
        'inclusive_runtime', jsonb_build_object('accumulate', inclusive_accumulate, 'count', inclusive_count, 'kurtosis', inclusive_kurtosis, 'maximum', inclusive_maximum, 'mean', inclusive_mean, 'minimum', inclusive_minimum, 'skewness', inclusive_skewness, 'stddev', inclusive_stddev))) AS doc
FROM profiles;

CREATE OR REPLACE VIEW counter_stats_json AS
SELECT run, app AS pid, jsonb_build_object('app', app, 'counter', counter, 'stats', jsonb_build_object(
    'accumulate', accumulate, 'count', "count", 'kurtosis', kurtosis, 'maximum', maximum,
    'mean', mean, 'minimum', minimum, 'skewness', skewness, 'stddev', stddev)) AS doc
FROM counter_stats;

CREATE OR REPLACE VIEW ad_model_json AS
SELECT run, pid, fid, jsonb_build_object('fid', fid, 'func_name', func_name, 'model', model, 'pid', pid) AS doc FROM ad_model;

CREATE OR REPLACE VIEW path_stats AS
SELECT s.run, s.pid, s.path, s.parent, p.depth, s.fn, f.fid, f.name AS func, s.calls, s.exclusive_us, p.call_path
FROM path_profiles s
LEFT JOIN call_paths p ON p.run = s.run AND p.pid = s.pid AND p.path = s.path
LEFT JOIN functions f ON f.run = s.run AND f.pid = s.pid AND f.fn = s.fn;
