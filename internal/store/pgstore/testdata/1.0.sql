
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

CREATE SCHEMA chimbuko;

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE chimbuko.activity (
    run integer NOT NULL,
    packed text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE chimbuko.final_models (
    run integer NOT NULL,
    pid integer NOT NULL,
    fn integer NOT NULL,
    model integer
);

CREATE TABLE chimbuko.functions (
    run integer NOT NULL,
    pid integer NOT NULL,
    fn integer NOT NULL,
    fid bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE chimbuko.models (
    run integer NOT NULL,
    pid integer NOT NULL,
    fn integer NOT NULL,
    model integer NOT NULL,
    params json NOT NULL
);

CREATE VIEW chimbuko.ad_model AS
 SELECT m.run,
    m.pid,
    f.fid,
    f.name AS func_name,
    m.fn,
    m.model AS version,
    (v.params)::jsonb AS model
   FROM ((chimbuko.final_models m
     LEFT JOIN chimbuko.functions f ON (((f.run = m.run) AND (f.pid = m.pid) AND (f.fn = m.fn))))
     LEFT JOIN chimbuko.models v ON (((v.run = m.run) AND (v.pid = m.pid) AND (v.fn = m.fn) AND (v.model = m.model))));

CREATE VIEW chimbuko.ad_model_json AS
 SELECT ad_model.run,
    ad_model.pid,
    ad_model.fid,
    jsonb_build_object('fid', ad_model.fid, 'func_name', ad_model.func_name, 'model', ad_model.model, 'pid', ad_model.pid) AS doc
   FROM chimbuko.ad_model;

CREATE TABLE chimbuko.executions (
    run integer NOT NULL,
    pid integer NOT NULL,
    rid integer NOT NULL,
    fn integer NOT NULL,
    path integer NOT NULL,
    io_step integer NOT NULL,
    ev_step integer NOT NULL,
    anomalous boolean NOT NULL,
    is_gpu_event boolean NOT NULL,
    lost_time bigint NOT NULL,
    outlier_severity double precision NOT NULL,
    outlier_score double precision NOT NULL,
    entry bigint NOT NULL,
    exit bigint NOT NULL,
    runtime_exclusive bigint NOT NULL,
    status text COLLATE pg_catalog."C",
    hostname text NOT NULL COLLATE pg_catalog."C",
    runtime_total bigint NOT NULL,
    io_step_tstart bigint NOT NULL,
    io_step_tend bigint NOT NULL,
    ev_row bigint NOT NULL,
    tid bigint NOT NULL,
    version integer NOT NULL,
    model integer,
    sample integer,
    ev_text text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    detail jsonb NOT NULL,
    doc jsonb,
    kind text COLLATE pg_catalog."C",
    children bigint NOT NULL,
    usual_children bigint NOT NULL
)
WITH (toast_tuple_target='128');
ALTER TABLE ONLY chimbuko.executions ALTER COLUMN status SET STORAGE MAIN;
ALTER TABLE ONLY chimbuko.executions ALTER COLUMN hostname SET STORAGE MAIN;
ALTER TABLE ONLY chimbuko.executions ALTER COLUMN ev_text SET STORAGE MAIN;
ALTER TABLE ONLY chimbuko.executions ALTER COLUMN detail SET COMPRESSION lz4;
ALTER TABLE ONLY chimbuko.executions ALTER COLUMN kind SET STORAGE MAIN;

CREATE VIEW chimbuko.all_executions AS
 SELECT e.run,
    e.pid,
    e.rid,
    e.tid,
    e.ev_step,
    e.ev_row,
        CASE
            WHEN (e.ev_text = ''::text) THEN (((((e.rid)::text || ':'::text) || (e.ev_step)::text) || ':'::text) || (e.ev_row)::text)
            ELSE e.ev_text
        END AS event_id,
    e.anomalous,
    e.fn,
    f.fid,
    f.name AS func,
    e.path,
    e.model,
    e.hostname,
    e.entry,
    e.exit,
    e.runtime_exclusive,
    e.runtime_total,
    e.lost_time,
    e.outlier_score,
    e.outlier_severity,
    e.status,
    e.io_step,
    e.io_step_tstart,
    e.io_step_tend,
    e.is_gpu_event,
    e.version,
    e.kind,
    ((e.detail ->> 'why'::text) COLLATE "C") AS why,
    e.children,
    e.usual_children,
    e.rid AS rank
   FROM (chimbuko.executions e
     LEFT JOIN chimbuko.functions f ON (((f.run = e.run) AND (f.pid = e.pid) AND (f.fn = e.fn))));

CREATE VIEW chimbuko.anomalies AS
 SELECT all_executions.run,
    all_executions.pid,
    all_executions.rid,
    all_executions.tid,
    all_executions.ev_step,
    all_executions.ev_row,
    all_executions.event_id,
    all_executions.fn,
    all_executions.fid,
    all_executions.func,
    all_executions.path,
    all_executions.model,
    all_executions.hostname,
    all_executions.entry,
    all_executions.exit,
    all_executions.runtime_exclusive,
    all_executions.runtime_total,
    all_executions.lost_time,
    all_executions.outlier_score,
    all_executions.outlier_severity,
    all_executions.status,
    all_executions.io_step,
    all_executions.io_step_tstart,
    all_executions.io_step_tend,
    all_executions.is_gpu_event,
    all_executions.version,
    all_executions.kind,
    all_executions.why,
    all_executions.children,
    all_executions.usual_children,
    all_executions.rank
   FROM chimbuko.all_executions
  WHERE all_executions.anomalous;

CREATE TABLE chimbuko.samples (
    run integer NOT NULL,
    pid integer NOT NULL,
    sample integer NOT NULL,
    "timestamp" bigint NOT NULL,
    state jsonb NOT NULL
);

CREATE VIEW chimbuko.execution_documents AS
 SELECT e.run,
    e.pid,
    e.rid,
    e.tid,
    e.ev_step,
    e.ev_row,
    NULLIF(e.ev_text, ''::text) AS ev_text,
    e.anomalous,
    COALESCE(e.doc, ((((((e.detail || jsonb_build_object('algo_params', (m.params)::jsonb, 'entry', e.entry, 'event_id',
        CASE
            WHEN (e.ev_text = ''::text) THEN (((((e.rid)::text || ':'::text) || (e.ev_step)::text) || ':'::text) || (e.ev_row)::text)
            ELSE e.ev_text
        END, 'exit', e.exit, 'fid', f.fid, 'func', f.name, 'hostname', e.hostname, 'io_step', e.io_step, 'io_step_tend', e.io_step_tend, 'io_step_tstart', e.io_step_tstart, 'is_gpu_event', e.is_gpu_event, 'node_state',
        CASE
            WHEN (x.sample IS NOT NULL) THEN jsonb_build_object('data', x.state, 'timestamp', x."timestamp")
            ELSE NULL::jsonb
        END, 'outlier_score', e.outlier_score, 'outlier_severity', e.outlier_severity, 'pid', e.pid, 'rid', e.rid, 'runtime_exclusive', e.runtime_exclusive, 'runtime_total', e.runtime_total, 'tid', e.tid, 'version', e.version)) ||
        CASE
            WHEN (e.children <> 0) THEN jsonb_build_object('children', e.children)
            ELSE '{}'::jsonb
        END) ||
        CASE
            WHEN (e.usual_children <> 0) THEN jsonb_build_object('usual_children', e.usual_children)
            ELSE '{}'::jsonb
        END) ||
        CASE
            WHEN (e.kind IS NOT NULL) THEN jsonb_build_object('kind', e.kind)
            ELSE '{}'::jsonb
        END) ||
        CASE
            WHEN (e.lost_time <> 0) THEN jsonb_build_object('lost_time', e.lost_time)
            ELSE '{}'::jsonb
        END) ||
        CASE
            WHEN (e.status IS NOT NULL) THEN jsonb_build_object('status', e.status)
            ELSE '{}'::jsonb
        END)) AS doc,
    e.rid AS rank
   FROM (((chimbuko.executions e
     LEFT JOIN chimbuko.functions f ON (((f.run = e.run) AND (f.pid = e.pid) AND (f.fn = e.fn))))
     LEFT JOIN chimbuko.models m ON (((m.run = e.run) AND (m.pid = e.pid) AND (m.fn = e.fn) AND (m.model = e.model))))
     LEFT JOIN chimbuko.samples x ON (((x.run = e.run) AND (x.pid = e.pid) AND (x.sample = e.sample))));

CREATE VIEW chimbuko.anomalies_json AS
 SELECT execution_documents.run,
    execution_documents.pid,
    execution_documents.rid,
    execution_documents.tid,
    execution_documents.ev_step,
    execution_documents.ev_row,
    execution_documents.ev_text,
    execution_documents.doc,
    execution_documents.rank
   FROM chimbuko.execution_documents
  WHERE execution_documents.anomalous;

CREATE TABLE chimbuko.paths (
    run integer NOT NULL,
    pid integer NOT NULL,
    path integer NOT NULL,
    fns integer[] NOT NULL
);

CREATE VIEW chimbuko.call_paths AS
 SELECT p.run,
    p.pid,
    p.path,
    cardinality(p.fns) AS depth,
    COALESCE(( SELECT string_agg(f.name, ' > '::text ORDER BY u.n) AS string_agg
           FROM (unnest(p.fns) WITH ORDINALITY u(fn, n)
             JOIN chimbuko.functions f ON (((f.run = p.run) AND (f.pid = p.pid) AND (f.fn = u.fn))))), ''::text) AS call_path
   FROM chimbuko.paths p;

CREATE TABLE chimbuko.clocks (
    run integer NOT NULL,
    pid integer NOT NULL,
    rid integer NOT NULL,
    offset_us bigint NOT NULL,
    matched bigint NOT NULL
);

CREATE TABLE chimbuko.collectives (
    run integer NOT NULL,
    collective integer NOT NULL,
    pid integer NOT NULL,
    operation text NOT NULL COLLATE pg_catalog."C",
    process_group text NOT NULL COLLATE pg_catalog."C",
    group_size integer NOT NULL,
    ranks_seen integer NOT NULL,
    bytes bigint NOT NULL,
    dtype text NOT NULL COLLATE pg_catalog."C",
    calls bigint NOT NULL,
    latency_sum_us bigint NOT NULL,
    latency_max_us bigint NOT NULL,
    skews bigint NOT NULL,
    skew_sum_us bigint NOT NULL,
    skew_max_us bigint NOT NULL,
    last_ranks json NOT NULL,
    bus_bandwidth double precision NOT NULL
);

CREATE VIEW chimbuko.counter_events AS
 SELECT e.run,
    e.pid,
    e.rid,
    e.tid,
        CASE
            WHEN (e.ev_text = ''::text) THEN (((((e.rid)::text || ':'::text) || (e.ev_step)::text) || ':'::text) || (e.ev_row)::text)
            ELSE e.ev_text
        END AS event_id,
    e.anomalous,
    (s.n)::integer AS "position",
    s.counter_idx,
    s.counter_name,
    s.counter_value,
    s.ts,
    e.ev_step,
    e.ev_row,
    e.rid AS rank
   FROM (chimbuko.executions e
     CROSS JOIN LATERAL ROWS FROM(jsonb_to_recordset((e.detail -> 'counter_events'::text)) AS (counter_idx bigint, counter_name text COLLATE "C", counter_value numeric(20,0), ts bigint)) WITH ORDINALITY s(counter_idx, counter_name, counter_value, ts, n));

CREATE TABLE chimbuko.counter_stats (
    run integer NOT NULL,
    app integer NOT NULL,
    counter text NOT NULL COLLATE pg_catalog."C",
    accumulate double precision NOT NULL,
    count double precision NOT NULL,
    kurtosis double precision NOT NULL,
    maximum double precision NOT NULL,
    mean double precision NOT NULL,
    minimum double precision NOT NULL,
    skewness double precision NOT NULL,
    stddev double precision NOT NULL
);

CREATE VIEW chimbuko.counter_stats_json AS
 SELECT counter_stats.run,
    counter_stats.app AS pid,
    jsonb_build_object('app', counter_stats.app, 'counter', counter_stats.counter, 'stats', jsonb_build_object('accumulate', counter_stats.accumulate, 'count', counter_stats.count, 'kurtosis', counter_stats.kurtosis, 'maximum', counter_stats.maximum, 'mean', counter_stats.mean, 'minimum', counter_stats.minimum, 'skewness', counter_stats.skewness, 'stddev', counter_stats.stddev)) AS doc
   FROM chimbuko.counter_stats;

CREATE TABLE chimbuko.efficiency (
    run integer NOT NULL,
    pid integer NOT NULL,
    entire boolean NOT NULL,
    begin_us bigint NOT NULL,
    from_s double precision NOT NULL,
    to_s double precision NOT NULL,
    ranks integer NOT NULL,
    parallel double precision NOT NULL,
    load_balance double precision NOT NULL,
    communication double precision NOT NULL,
    slowest_rank bigint NOT NULL,
    device_parallel double precision,
    device_load_balance double precision
);

CREATE TABLE chimbuko.findings (
    run integer NOT NULL,
    finding integer NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    form text COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    severity text NOT NULL COLLATE pg_catalog."C",
    program integer NOT NULL,
    function text NOT NULL COLLATE pg_catalog."C",
    call_path text NOT NULL COLLATE pg_catalog."C",
    role text COLLATE pg_catalog."C",
    cause integer,
    ranks json NOT NULL,
    hosts json NOT NULL,
    from_s double precision NOT NULL,
    to_s double precision,
    calls bigint NOT NULL,
    of_calls bigint NOT NULL,
    expected_us double precision NOT NULL,
    actual_us double precision NOT NULL,
    period_s double precision,
    lost_own_us bigint NOT NULL,
    lost_caused_us bigint NOT NULL,
    lost_us bigint NOT NULL,
    share double precision NOT NULL,
    confidence double precision NOT NULL,
    summary text NOT NULL COLLATE pg_catalog."C",
    reason text COLLATE pg_catalog."C",
    examples json NOT NULL,
    longest_us bigint NOT NULL,
    worst_rank integer,
    worst_rank_lost_us bigint,
    first_us bigint NOT NULL,
    last_us bigint NOT NULL,
    trend text COLLATE pg_catalog."C",
    over_time json NOT NULL,
    waits bigint NOT NULL,
    wait_ranks bigint NOT NULL,
    late text COLLATE pg_catalog."C"
);

CREATE VIEW chimbuko.frames AS
 SELECT e.run,
    e.pid,
    e.rid,
    e.tid,
        CASE
            WHEN (e.ev_text = ''::text) THEN (((((e.rid)::text || ':'::text) || (e.ev_step)::text) || ':'::text) || (e.ev_row)::text)
            ELSE e.ev_text
        END AS event_id,
    e.anomalous,
    ((s.n - 1))::integer AS depth,
    f.fn,
    s.fid,
    s.func,
    s.event_id AS frame_event_id,
    s.entry,
    s.exit,
    s.is_anomaly,
    e.rid AS rank
   FROM ((chimbuko.executions e
     CROSS JOIN LATERAL ROWS FROM(jsonb_to_recordset((e.detail -> 'call_stack'::text)) AS (entry bigint, event_id text COLLATE "C", exit bigint, fid bigint, func text COLLATE "C", is_anomaly boolean)) WITH ORDINALITY s(entry, event_id, exit, fid, func, is_anomaly, n))
     LEFT JOIN chimbuko.functions f ON (((f.run = e.run) AND (f.pid = e.pid) AND (f.fid = s.fid) AND (f.name = s.func))));

CREATE TABLE chimbuko.profiles (
    run integer NOT NULL,
    pid integer NOT NULL,
    fn integer NOT NULL,
    fid bigint NOT NULL,
    fname text NOT NULL COLLATE pg_catalog."C",
    anomalies boolean NOT NULL,
    first_io_step bigint,
    last_io_step bigint,
    min_timestamp bigint,
    max_timestamp bigint,
    anomaly_accumulate double precision,
    anomaly_count double precision,
    anomaly_kurtosis double precision,
    anomaly_maximum double precision,
    anomaly_mean double precision,
    anomaly_minimum double precision,
    anomaly_skewness double precision,
    anomaly_stddev double precision,
    score_accumulate double precision,
    score_count double precision,
    score_kurtosis double precision,
    score_maximum double precision,
    score_mean double precision,
    score_minimum double precision,
    score_skewness double precision,
    score_stddev double precision,
    severity_accumulate double precision,
    severity_count double precision,
    severity_kurtosis double precision,
    severity_maximum double precision,
    severity_mean double precision,
    severity_minimum double precision,
    severity_skewness double precision,
    severity_stddev double precision,
    exclusive_accumulate double precision,
    exclusive_count double precision,
    exclusive_kurtosis double precision,
    exclusive_maximum double precision,
    exclusive_mean double precision,
    exclusive_minimum double precision,
    exclusive_skewness double precision,
    exclusive_stddev double precision,
    inclusive_accumulate double precision,
    inclusive_count double precision,
    inclusive_kurtosis double precision,
    inclusive_maximum double precision,
    inclusive_mean double precision,
    inclusive_minimum double precision,
    inclusive_skewness double precision,
    inclusive_stddev double precision
);

CREATE VIEW chimbuko.func_stats AS
 SELECT profiles.run,
    profiles.pid AS app,
    profiles.fn,
    profiles.fid,
    profiles.fname,
    profiles.anomalies,
    profiles.first_io_step,
    profiles.last_io_step,
    profiles.min_timestamp,
    profiles.max_timestamp,
    profiles.anomaly_accumulate,
    profiles.anomaly_count,
    profiles.anomaly_kurtosis,
    profiles.anomaly_maximum,
    profiles.anomaly_mean,
    profiles.anomaly_minimum,
    profiles.anomaly_skewness,
    profiles.anomaly_stddev,
    profiles.score_accumulate,
    profiles.score_count,
    profiles.score_kurtosis,
    profiles.score_maximum,
    profiles.score_mean,
    profiles.score_minimum,
    profiles.score_skewness,
    profiles.score_stddev,
    profiles.severity_accumulate,
    profiles.severity_count,
    profiles.severity_kurtosis,
    profiles.severity_maximum,
    profiles.severity_mean,
    profiles.severity_minimum,
    profiles.severity_skewness,
    profiles.severity_stddev,
    profiles.exclusive_accumulate,
    profiles.exclusive_count,
    profiles.exclusive_kurtosis,
    profiles.exclusive_maximum,
    profiles.exclusive_mean,
    profiles.exclusive_minimum,
    profiles.exclusive_skewness,
    profiles.exclusive_stddev,
    profiles.inclusive_accumulate,
    profiles.inclusive_count,
    profiles.inclusive_kurtosis,
    profiles.inclusive_maximum,
    profiles.inclusive_mean,
    profiles.inclusive_minimum,
    profiles.inclusive_skewness,
    profiles.inclusive_stddev
   FROM chimbuko.profiles;

CREATE VIEW chimbuko.func_stats_json AS
 SELECT profiles.run,
    profiles.pid,
    profiles.fid,
    jsonb_build_object('anomaly_metrics',
        CASE
            WHEN profiles.anomalies THEN jsonb_build_object('anomaly_count', jsonb_build_object('accumulate', profiles.anomaly_accumulate, 'count', profiles.anomaly_count, 'kurtosis', profiles.anomaly_kurtosis, 'maximum', profiles.anomaly_maximum, 'mean', profiles.anomaly_mean, 'minimum', profiles.anomaly_minimum, 'skewness', profiles.anomaly_skewness, 'stddev', profiles.anomaly_stddev), 'first_io_step', profiles.first_io_step, 'last_io_step', profiles.last_io_step, 'max_timestamp', profiles.max_timestamp, 'min_timestamp', profiles.min_timestamp, 'score', jsonb_build_object('accumulate', profiles.score_accumulate, 'count', profiles.score_count, 'kurtosis', profiles.score_kurtosis, 'maximum', profiles.score_maximum, 'mean', profiles.score_mean, 'minimum', profiles.score_minimum, 'skewness', profiles.score_skewness, 'stddev', profiles.score_stddev), 'severity', jsonb_build_object('accumulate', profiles.severity_accumulate, 'count', profiles.severity_count, 'kurtosis', profiles.severity_kurtosis, 'maximum', profiles.severity_maximum, 'mean', profiles.severity_mean, 'minimum', profiles.severity_minimum, 'skewness', profiles.severity_skewness, 'stddev', profiles.severity_stddev))
            ELSE NULL::jsonb
        END, 'app', profiles.pid, 'fid', profiles.fid, 'fname', profiles.fname, 'runtime_profile', jsonb_build_object('exclusive_runtime', jsonb_build_object('accumulate', profiles.exclusive_accumulate, 'count', profiles.exclusive_count, 'kurtosis', profiles.exclusive_kurtosis, 'maximum', profiles.exclusive_maximum, 'mean', profiles.exclusive_mean, 'minimum', profiles.exclusive_minimum, 'skewness', profiles.exclusive_skewness, 'stddev', profiles.exclusive_stddev), 'inclusive_runtime', jsonb_build_object('accumulate', profiles.inclusive_accumulate, 'count', profiles.inclusive_count, 'kurtosis', profiles.inclusive_kurtosis, 'maximum', profiles.inclusive_maximum, 'mean', profiles.inclusive_mean, 'minimum', profiles.inclusive_minimum, 'skewness', profiles.inclusive_skewness, 'stddev', profiles.inclusive_stddev))) AS doc
   FROM chimbuko.profiles;

CREATE TABLE chimbuko.gpu_times (
    run integer NOT NULL,
    pid integer NOT NULL,
    rid integer NOT NULL,
    step bigint,
    start_us bigint NOT NULL,
    total_us bigint NOT NULL,
    compute_us bigint NOT NULL,
    communication_us bigint NOT NULL,
    memory_us bigint NOT NULL,
    exposed_communication_us bigint NOT NULL,
    exposed_memory_us bigint NOT NULL,
    overlap_us bigint NOT NULL,
    idle_us bigint NOT NULL,
    host_wait_us bigint NOT NULL,
    kernel_wait_us bigint NOT NULL,
    other_wait_us bigint NOT NULL,
    streams json NOT NULL
);

CREATE TABLE chimbuko.links (
    run integer NOT NULL,
    pid integer NOT NULL,
    rid integer NOT NULL,
    event_id text NOT NULL COLLATE pg_catalog."C",
    finding integer NOT NULL,
    role text COLLATE pg_catalog."C",
    culprit_pid integer,
    culprit_event_id text COLLATE pg_catalog."C",
    late_rid integer,
    hops integer NOT NULL,
    waits bigint NOT NULL,
    wait_ranks bigint NOT NULL,
    waits_lost_us bigint NOT NULL
);

CREATE VIEW chimbuko.live_rollups AS
 SELECT executions.run,
    executions.pid,
    executions.fn,
    executions.path,
    executions.rid,
    min(executions.hostname) AS hostname,
    count(*) AS anomalies,
    (sum(executions.lost_time))::bigint AS lost_us,
    (sum(executions.runtime_exclusive))::bigint AS anomalous_us,
    sum(executions.outlier_severity) AS severity,
    max(executions.outlier_score) AS score,
    min(executions.entry) AS first_us,
    max(executions.exit) AS last_us,
    COALESCE(executions.kind, ''::text) AS kind,
    executions.rid AS rank
   FROM chimbuko.executions
  WHERE (executions.anomalous AND (executions.status IS DISTINCT FROM 'withdrawn'::text))
  GROUP BY executions.run, executions.pid, executions.fn, executions.path, executions.rid, COALESCE(executions.kind, ''::text);

CREATE TABLE chimbuko.load_windows (
    run integer NOT NULL,
    pid integer NOT NULL,
    rid integer NOT NULL,
    tid bigint NOT NULL,
    device boolean NOT NULL,
    from_s double precision NOT NULL,
    to_s double precision NOT NULL,
    useful_us bigint NOT NULL,
    wait_us bigint NOT NULL,
    ratio double precision
);

CREATE VIEW chimbuko.messages AS
 SELECT e.run,
    e.pid,
    e.rid,
    e.tid,
        CASE
            WHEN (e.ev_text = ''::text) THEN (((((e.rid)::text || ':'::text) || (e.ev_step)::text) || ':'::text) || (e.ev_row)::text)
            ELSE e.ev_text
        END AS event_id,
    e.anomalous,
    (s.n)::integer AS "position",
    s.type,
    s.src,
    s.tar,
    s.bytes,
    s.tag,
    s."timestamp",
    s.execdata_key,
    e.ev_step,
    e.ev_row,
    e.rid AS rank
   FROM (chimbuko.executions e
     CROSS JOIN LATERAL ROWS FROM(jsonb_to_recordset(((e.detail -> 'event_window'::text) -> 'comm_window'::text)) AS (bytes numeric(20,0), execdata_key text COLLATE "C", src integer, tag integer, tar integer, "timestamp" bigint, type text COLLATE "C")) WITH ORDINALITY s(bytes, execdata_key, src, tag, tar, "timestamp", type, n));

CREATE TABLE chimbuko.metadata (
    run integer NOT NULL,
    pid integer NOT NULL,
    rid integer NOT NULL,
    tid bigint NOT NULL,
    io_step integer NOT NULL,
    descr text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C"
);

CREATE VIEW chimbuko.metadata_json AS
 SELECT metadata.run,
    metadata.pid,
    metadata.rid,
    metadata.tid,
    metadata.io_step,
    jsonb_build_object('descr', metadata.descr, 'pid', metadata.pid, 'rid', metadata.rid, 'tid', metadata.tid, 'value', metadata.value) AS doc,
    metadata.rid AS rank
   FROM chimbuko.metadata;

CREATE VIEW chimbuko.node_states AS
 SELECT e.run,
    e.pid,
    e.rid,
    e.tid,
        CASE
            WHEN (e.ev_text = ''::text) THEN (((((e.rid)::text || ':'::text) || (e.ev_step)::text) || ':'::text) || (e.ev_row)::text)
            ELSE e.ev_text
        END AS event_id,
    e.anomalous,
    x."timestamp",
    s.field,
    s.value,
    e.ev_step,
    e.ev_row,
    e.rid AS rank
   FROM ((chimbuko.executions e
     JOIN chimbuko.samples x ON (((x.run = e.run) AND (x.pid = e.pid) AND (x.sample = e.sample))))
     CROSS JOIN LATERAL jsonb_to_recordset(x.state) s(field text COLLATE "C", value numeric(20,0)));

CREATE VIEW chimbuko.normalexecs AS
 SELECT all_executions.run,
    all_executions.pid,
    all_executions.rid,
    all_executions.tid,
    all_executions.ev_step,
    all_executions.ev_row,
    all_executions.event_id,
    all_executions.fn,
    all_executions.fid,
    all_executions.func,
    all_executions.path,
    all_executions.model,
    all_executions.hostname,
    all_executions.entry,
    all_executions.exit,
    all_executions.runtime_exclusive,
    all_executions.runtime_total,
    all_executions.lost_time,
    all_executions.outlier_score,
    all_executions.outlier_severity,
    all_executions.status,
    all_executions.io_step,
    all_executions.io_step_tstart,
    all_executions.io_step_tend,
    all_executions.is_gpu_event,
    all_executions.version,
    all_executions.kind,
    all_executions.why,
    all_executions.children,
    all_executions.usual_children,
    all_executions.rank
   FROM chimbuko.all_executions
  WHERE (NOT all_executions.anomalous);

CREATE VIEW chimbuko.normalexecs_json AS
 SELECT execution_documents.run,
    execution_documents.pid,
    execution_documents.rid,
    execution_documents.tid,
    execution_documents.ev_step,
    execution_documents.ev_row,
    execution_documents.ev_text,
    execution_documents.doc,
    execution_documents.rank
   FROM chimbuko.execution_documents
  WHERE (NOT execution_documents.anomalous);

CREATE TABLE chimbuko.numbering (
    run integer NOT NULL,
    changes bigint NOT NULL
);

CREATE TABLE chimbuko.path_profiles (
    run integer NOT NULL,
    pid integer NOT NULL,
    path integer NOT NULL,
    parent integer,
    fn integer NOT NULL,
    calls bigint NOT NULL,
    exclusive_us bigint NOT NULL
);

CREATE VIEW chimbuko.path_stats AS
 SELECT s.run,
    s.pid,
    s.path,
    s.parent,
    p.depth,
    s.fn,
    f.fid,
    f.name AS func,
    s.calls,
    s.exclusive_us,
    p.call_path
   FROM ((chimbuko.path_profiles s
     LEFT JOIN chimbuko.call_paths p ON (((p.run = s.run) AND (p.pid = s.pid) AND (p.path = s.path))))
     LEFT JOIN chimbuko.functions f ON (((f.run = s.run) AND (f.pid = s.pid) AND (f.fn = s.fn))));

CREATE TABLE chimbuko.rank_loads (
    run integer NOT NULL,
    pid integer NOT NULL,
    rid integer NOT NULL,
    tid bigint NOT NULL,
    device boolean NOT NULL,
    host text NOT NULL COLLATE pg_catalog."C",
    role integer NOT NULL,
    peers integer NOT NULL,
    elapsed_us bigint NOT NULL,
    useful_us bigint NOT NULL,
    wait_us bigint NOT NULL,
    sync_us bigint NOT NULL,
    ratio double precision,
    pattern text COLLATE pg_catalog."C",
    from_s double precision,
    to_s double precision,
    saved_us bigint NOT NULL,
    saved_share double precision NOT NULL,
    functions json NOT NULL
);

CREATE TABLE chimbuko.rollups (
    run integer NOT NULL,
    pid integer NOT NULL,
    fn integer NOT NULL,
    path integer NOT NULL,
    rid integer NOT NULL,
    hostname text NOT NULL COLLATE pg_catalog."C",
    anomalies bigint NOT NULL,
    lost_us bigint NOT NULL,
    anomalous_us bigint NOT NULL,
    severity double precision NOT NULL,
    score double precision NOT NULL,
    first_us bigint NOT NULL,
    last_us bigint NOT NULL,
    kind text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE chimbuko.runs (
    run integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    started timestamp with time zone NOT NULL,
    finished timestamp with time zone,
    info json
);

ALTER TABLE chimbuko.runs ALTER COLUMN run ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME chimbuko.runs_run_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE chimbuko.schema_version (
    version integer NOT NULL
);

CREATE TABLE chimbuko.slow_peers (
    run integer NOT NULL,
    slow_peer integer NOT NULL,
    pid integer NOT NULL,
    pattern text NOT NULL COLLATE pg_catalog."C",
    host text COLLATE pg_catalog."C",
    ranks json NOT NULL,
    hosts json NOT NULL,
    tid bigint NOT NULL,
    device boolean NOT NULL,
    role integer NOT NULL,
    peers integer NOT NULL,
    weak boolean NOT NULL,
    ratio double precision NOT NULL,
    from_s double precision NOT NULL,
    to_s double precision,
    lost_own_us bigint NOT NULL,
    lost_caused_us bigint NOT NULL,
    saved_us bigint NOT NULL,
    saved_share double precision NOT NULL,
    confidence double precision NOT NULL,
    windows json NOT NULL,
    functions json NOT NULL,
    counters json NOT NULL,
    twin integer,
    sync_share double precision NOT NULL,
    peer_sync_share double precision NOT NULL
);

CREATE VIEW chimbuko.window_calls AS
 SELECT e.run,
    e.pid,
    e.rid,
    e.tid,
        CASE
            WHEN (e.ev_text = ''::text) THEN (((((e.rid)::text || ':'::text) || (e.ev_step)::text) || ':'::text) || (e.ev_row)::text)
            ELSE e.ev_text
        END AS event_id,
    e.anomalous,
    (s.n)::integer AS "position",
    f.fn,
    s.fid,
    s.func,
    s.event_id AS call_event_id,
    s.parent_event_id,
    s.entry,
    s.exit,
    s.is_anomaly,
    e.rid AS rank
   FROM ((chimbuko.executions e
     CROSS JOIN LATERAL ROWS FROM(jsonb_to_recordset(((e.detail -> 'event_window'::text) -> 'exec_window'::text)) AS (entry bigint, event_id text COLLATE "C", exit bigint, fid bigint, func text COLLATE "C", is_anomaly boolean, parent_event_id text COLLATE "C")) WITH ORDINALITY s(entry, event_id, exit, fid, func, is_anomaly, parent_event_id, n))
     LEFT JOIN chimbuko.functions f ON (((f.run = e.run) AND (f.pid = e.pid) AND (f.fid = s.fid) AND (f.name = s.func))));

INSERT INTO chimbuko.executions VALUES (1, 0, 3, 27, 4, 0, 0, false, false, 134, 3179, 16.034020322480323, 1700000000325231, 1700000000328410, 3179, 'confirmed', 'node0000', 3179, 1700000000000000, 1700000001000000, 95148, 1, 2, 1, NULL, '', '{"why": "took 3.18 ms, usually 3.05 ms; flagged during the run and confirmed at the end", "call_stack": [{"fid": 31, "exit": 1700000000328410, "func": "pthread_region_31 [{driver.c} {317,0}-{361,0}]", "entry": 1700000000325231, "event_id": "3:0:95148", "is_anomaly": true}, {"fid": 7, "exit": 1700000000340477, "func": "pthread_region_7 [{driver.c} {77,0}-{121,0}]", "entry": 1700000000313164, "event_id": "3:0:95091", "is_anomaly": false}, {"fid": 3, "exit": 1700000000342795, "func": "pthread_region_3 [{driver.c} {37,0}-{81,0}]", "entry": 1700000000310846, "event_id": "3:0:95085", "is_anomaly": false}, {"fid": 1, "exit": 1700000000346712, "func": "MPI_Collective_1()", "entry": 1700000000306929, "event_id": "3:0:95076", "is_anomaly": false}, {"fid": 0, "exit": 0, "func": ".TAU application", "entry": 1699999999999997, "event_id": "3:0:0", "is_anomaly": false}], "gpu_parent": null, "event_window": {"comm_window": [{"pid": 0, "rid": 3, "src": 3, "tag": 0, "tar": 4, "tid": 1, "type": "SEND", "bytes": 65536, "timestamp": 1700000000316677, "execdata_key": "3:0:95131"}, {"pid": 0, "rid": 3, "src": 4, "tag": 1, "tar": 3, "tid": 1, "type": "RECV", "bytes": 8, "timestamp": 1700000000317812, "execdata_key": "3:0:95143"}, {"pid": 0, "rid": 3, "src": 3, "tag": 2, "tar": 5, "tid": 1, "type": "SEND", "bytes": 131072, "timestamp": 1700000000333381, "execdata_key": "3:0:95156"}, {"pid": 0, "rid": 3, "src": 5, "tag": 3, "tar": 3, "tid": 1, "type": "RECV", "bytes": 512, "timestamp": 1700000000334708, "execdata_key": "3:0:95168"}], "exec_window": [{"fid": 16, "exit": 1700000000315857, "func": "void LAMMPS_NS::PairLJCut::compute_16(int, int) [{pair_lj_cut.cpp} {167,1}-{211,1}]", "entry": 1700000000315389, "event_id": "3:0:95124", "is_anomaly": false, "parent_event_id": "3:0:95091"}, {"fid": 15, "exit": 1700000000316364, "func": "pthread_region_15 [{driver.c} {157,0}-{201,0}]", "entry": 1700000000315870, "event_id": "3:0:95126", "is_anomaly": false, "parent_event_id": "3:0:95091"}, {"fid": 14, "exit": 1700000000316661, "func": "double solver::Grid<double, 3>::relax_14(const Field&, Field&) [{relax.hpp} {147,3}-{191,3}]", "entry": 1700000000316384, "event_id": "3:0:95129", "is_anomaly": false, "parent_event_id": "3:0:95091"}, {"fid": 13, "exit": 1700000000316945, "func": "MPI_Collective_13()", "entry": 1700000000316676, "event_id": "3:0:95131", "is_anomaly": false, "parent_event_id": "3:0:95091"}, {"fid": 12, "exit": 1700000000317249, "func": "void LAMMPS_NS::PairLJCut::compute_12(int, int) [{pair_lj_cut.cpp} {127,1}-{171,1}]", "entry": 1700000000316960, "event_id": "3:0:95134", "is_anomaly": false, "parent_event_id": "3:0:95091"}, {"fid": 11, "exit": 1700000000317496, "func": "pthread_region_11 [{driver.c} {117,0}-{161,0}]", "entry": 1700000000317265, "event_id": "3:0:95136", "is_anomaly": false, "parent_event_id": "3:0:95091"}, {"fid": 10, "exit": 1700000000317610, "func": "double solver::Grid<double, 3>::relax_10(const Field&, Field&) [{relax.hpp} {107,3}-{151,3}]", "entry": 1700000000317513, "event_id": "3:0:95138", "is_anomaly": false, "parent_event_id": "3:0:95091"}, {"fid": 9, "exit": 1700000000317795, "func": "MPI_Collective_9()", "entry": 1700000000317628, "event_id": "3:0:95140", "is_anomaly": false, "parent_event_id": "3:0:95091"}, {"fid": 8, "exit": 1700000000317918, "func": "void LAMMPS_NS::PairLJCut::compute_8(int, int) [{pair_lj_cut.cpp} {87,1}-{131,1}]", "entry": 1700000000317811, "event_id": "3:0:95143", "is_anomaly": false, "parent_event_id": "3:0:95091"}, {"fid": 39, "exit": 1700000000325224, "func": "pthread_region_39 [{driver.c} {397,0}-{441,0}]", "entry": 1700000000317928, "event_id": "3:0:95146", "is_anomaly": false, "parent_event_id": "3:0:95091"}, {"fid": 31, "exit": 1700000000328410, "func": "pthread_region_31 [{driver.c} {317,0}-{361,0}]", "entry": 1700000000325231, "event_id": "3:0:95148", "is_anomaly": true, "parent_event_id": "3:0:95091"}, {"fid": 39, "exit": 1700000000333229, "func": "pthread_region_39 [{driver.c} {397,0}-{441,0}]", "entry": 1700000000328426, "event_id": "3:0:95151", "is_anomaly": false, "parent_event_id": "3:0:95091"}, {"fid": 9, "exit": 1700000000333366, "func": "MPI_Collective_9()", "entry": 1700000000333249, "event_id": "3:0:95153", "is_anomaly": false, "parent_event_id": "3:0:95091"}, {"fid": 11, "exit": 1700000000333610, "func": "pthread_region_11 [{driver.c} {117,0}-{161,0}]", "entry": 1700000000333380, "event_id": "3:0:95156", "is_anomaly": false, "parent_event_id": "3:0:95153"}, {"fid": 13, "exit": 1700000000333602, "func": "MPI_Collective_13()", "entry": 1700000000333391, "event_id": "3:0:95159", "is_anomaly": false, "parent_event_id": "3:0:95091"}, {"fid": 15, "exit": 1700000000333923, "func": "pthread_region_15 [{driver.c} {157,0}-{201,0}]", "entry": 1700000000333603, "event_id": "3:0:95161", "is_anomaly": false, "parent_event_id": "3:0:95091"}, {"fid": 17, "exit": 1700000000334243, "func": "MPI_Collective_17()", "entry": 1700000000333932, "event_id": "3:0:95163", "is_anomaly": false, "parent_event_id": "3:0:95161"}, {"fid": 19, "exit": 1700000000334690, "func": "pthread_region_19 [{driver.c} {197,0}-{241,0}]", "entry": 1700000000333944, "event_id": "3:0:95166", "is_anomaly": false, "parent_event_id": "3:0:95091"}, {"fid": 21, "exit": 1700000000335563, "func": "MPI_Collective_21()", "entry": 1700000000334707, "event_id": "3:0:95168", "is_anomaly": false, "parent_event_id": "3:0:95091"}, {"fid": 23, "exit": 1700000000336375, "func": "pthread_region_23 [{driver.c} {237,0}-{281,0}]", "entry": 1700000000335572, "event_id": "3:0:95170", "is_anomaly": false, "parent_event_id": "3:0:95168"}, {"fid": 25, "exit": 1700000000337197, "func": "MPI_Collective_25()", "entry": 1700000000335584, "event_id": "3:0:95173", "is_anomaly": false, "parent_event_id": "3:0:95091"}]}, "gpu_location": null, "counter_events": [{"ts": 1700000000328410, "pid": 0, "rid": 3, "tid": 1, "counter_idx": 17, "counter_name": "PAPI_TOT_INS", "counter_value": 502746842344}]}', NULL, 'gpu', 310, 31);
INSERT INTO chimbuko.executions VALUES (1, 0, 0, 1, 1, 0, 0, true, false, 35256, 39283, 9.868906588808471, 1700000000324717, 1700000000364000, 39283, 'confirmed', 'node0000', 39283, 1700000000000000, 1700000001000000, 58503, 1, 2, 1, 1, '', '{"why": "took 39.3 ms, usually 4.03 ms; flagged during the run and confirmed at the end", "call_stack": [{"fid": 33, "exit": 1700000000364000, "func": "MPI_Collective_33()", "entry": 1700000000324717, "event_id": "0:0:58503", "is_anomaly": true}, {"fid": 6, "exit": 1700000000375019, "func": "double solver::Grid<double, 3>::relax_6(const Field&, Field&) [{relax.hpp} {67,3}-{111,3}]", "entry": 1700000000313698, "event_id": "0:0:58449", "is_anomaly": false}, {"fid": 2, "exit": 1700000000377867, "func": "double solver::Grid<double, 3>::relax_2(const Field&, Field&) [{relax.hpp} {27,3}-{71,3}]", "entry": 1700000000310850, "event_id": "0:0:58440", "is_anomaly": false}, {"fid": 1, "exit": 1700000000379386, "func": "MPI_Collective_1()", "entry": 1700000000309331, "event_id": "0:0:58426", "is_anomaly": false}, {"fid": 0, "exit": 0, "func": ".TAU application", "entry": 1700000000000000, "event_id": "0:0:0", "is_anomaly": false}], "gpu_parent": null, "event_window": {"comm_window": [{"pid": 0, "rid": 0, "src": 0, "tag": 0, "tar": 1, "tid": 1, "type": "SEND", "bytes": 262144, "timestamp": 1700000000322889, "execdata_key": "0:0:58482"}, {"pid": 0, "rid": 0, "src": 1, "tag": 1, "tar": 0, "tid": 1, "type": "RECV", "bytes": 262144, "timestamp": 1700000000324461, "execdata_key": "0:0:58497"}, {"pid": 0, "rid": 0, "src": 0, "tag": 2, "tar": 2, "tid": 1, "type": "SEND", "bytes": 16384, "timestamp": 1700000000364473, "execdata_key": "0:0:58511"}, {"pid": 0, "rid": 0, "src": 2, "tag": 3, "tar": 0, "tid": 1, "type": "RECV", "bytes": 32, "timestamp": 1700000000365589, "execdata_key": "0:0:58524"}], "exec_window": [{"fid": 18, "exit": 1700000000321968, "func": "double solver::Grid<double, 3>::relax_18(const Field&, Field&) [{relax.hpp} {187,3}-{231,3}]", "entry": 1700000000321442, "event_id": "0:0:58474", "is_anomaly": false, "parent_event_id": "0:0:58449"}, {"fid": 17, "exit": 1700000000322567, "func": "MPI_Collective_17()", "entry": 1700000000321986, "event_id": "0:0:58476", "is_anomaly": false, "parent_event_id": "0:0:58449"}, {"fid": 16, "exit": 1700000000322874, "func": "void LAMMPS_NS::PairLJCut::compute_16(int, int) [{pair_lj_cut.cpp} {167,1}-{211,1}]", "entry": 1700000000322586, "event_id": "0:0:58479", "is_anomaly": false, "parent_event_id": "0:0:58449"}, {"fid": 15, "exit": 1700000000323431, "func": "pthread_region_15 [{driver.c} {157,0}-{201,0}]", "entry": 1700000000322888, "event_id": "0:0:58482", "is_anomaly": false, "parent_event_id": "0:0:58449"}, {"fid": 14, "exit": 1700000000323688, "func": "double solver::Grid<double, 3>::relax_14(const Field&, Field&) [{relax.hpp} {147,3}-{191,3}]", "entry": 1700000000323450, "event_id": "0:0:58485", "is_anomaly": false, "parent_event_id": "0:0:58449"}, {"fid": 13, "exit": 1700000000323893, "func": "MPI_Collective_13()", "entry": 1700000000323696, "event_id": "0:0:58488", "is_anomaly": false, "parent_event_id": "0:0:58449"}, {"fid": 12, "exit": 1700000000324199, "func": "void LAMMPS_NS::PairLJCut::compute_12(int, int) [{pair_lj_cut.cpp} {127,1}-{171,1}]", "entry": 1700000000323909, "event_id": "0:0:58491", "is_anomaly": false, "parent_event_id": "0:0:58449"}, {"fid": 11, "exit": 1700000000324450, "func": "pthread_region_11 [{driver.c} {117,0}-{161,0}]", "entry": 1700000000324207, "event_id": "0:0:58494", "is_anomaly": false, "parent_event_id": "0:0:58449"}, {"fid": 10, "exit": 1700000000324567, "func": "double solver::Grid<double, 3>::relax_10(const Field&, Field&) [{relax.hpp} {107,3}-{151,3}]", "entry": 1700000000324460, "event_id": "0:0:58497", "is_anomaly": false, "parent_event_id": "0:0:58449"}, {"fid": 9, "exit": 1700000000324709, "func": "MPI_Collective_9()", "entry": 1700000000324569, "event_id": "0:0:58500", "is_anomaly": false, "parent_event_id": "0:0:58449"}, {"fid": 33, "exit": 1700000000364000, "func": "MPI_Collective_33()", "entry": 1700000000324717, "event_id": "0:0:58503", "is_anomaly": true, "parent_event_id": "0:0:58449"}, {"fid": 9, "exit": 1700000000364137, "func": "MPI_Collective_9()", "entry": 1700000000364001, "event_id": "0:0:58506", "is_anomaly": false, "parent_event_id": "0:0:58449"}, {"fid": 11, "exit": 1700000000364468, "func": "pthread_region_11 [{driver.c} {117,0}-{161,0}]", "entry": 1700000000364152, "event_id": "0:0:58508", "is_anomaly": false, "parent_event_id": "0:0:58449"}, {"fid": 13, "exit": 1700000000364697, "func": "MPI_Collective_13()", "entry": 1700000000364472, "event_id": "0:0:58511", "is_anomaly": false, "parent_event_id": "0:0:58508"}, {"fid": 15, "exit": 1700000000364692, "func": "pthread_region_15 [{driver.c} {157,0}-{201,0}]", "entry": 1700000000364474, "event_id": "0:0:58514", "is_anomaly": false, "parent_event_id": "0:0:58449"}, {"fid": 17, "exit": 1700000000364969, "func": "MPI_Collective_17()", "entry": 1700000000364703, "event_id": "0:0:58517", "is_anomaly": false, "parent_event_id": "0:0:58449"}, {"fid": 19, "exit": 1700000000365702, "func": "pthread_region_19 [{driver.c} {197,0}-{241,0}]", "entry": 1700000000364989, "event_id": "0:0:58520", "is_anomaly": false, "parent_event_id": "0:0:58517"}, {"fid": 21, "exit": 1700000000365572, "func": "MPI_Collective_21()", "entry": 1700000000365000, "event_id": "0:0:58522", "is_anomaly": false, "parent_event_id": "0:0:58449"}, {"fid": 23, "exit": 1700000000366740, "func": "pthread_region_23 [{driver.c} {237,0}-{281,0}]", "entry": 1700000000365588, "event_id": "0:0:58524", "is_anomaly": false, "parent_event_id": "0:0:58449"}, {"fid": 25, "exit": 1700000000368518, "func": "MPI_Collective_25()", "entry": 1700000000366741, "event_id": "0:0:58527", "is_anomaly": false, "parent_event_id": "0:0:58524"}, {"fid": 27, "exit": 1700000000368329, "func": "pthread_region_27 [{driver.c} {277,0}-{321,0}]", "entry": 1700000000366748, "event_id": "0:0:58529", "is_anomaly": false, "parent_event_id": "0:0:58449"}]}, "gpu_location": null, "counter_events": [{"ts": 1700000000364000, "pid": 0, "rid": 0, "tid": 1, "counter_idx": 17, "counter_name": "PAPI_TOT_INS", "counter_value": 568957860237}]}', NULL, 'fast', 330, 33);
INSERT INTO chimbuko.executions VALUES (1, 0, 1, 16, 2, 0, 0, true, false, 137, 706, 13.480547670269829, 1700000000423048, 1700000000423754, 706, 'confirmed', 'node0000', 706, 1700000000000000, 1700000001000000, 29390, 0, 2, 1, NULL, '', '{"why": "took 706 us, usually 569 us; flagged during the run and confirmed at the end", "call_stack": [{"fid": 19, "exit": 1700000000423754, "func": "pthread_region_19 [{driver.c} {197,0}-{241,0}]", "entry": 1700000000423048, "event_id": "1:0:29390", "is_anomaly": true}, {"fid": 7, "exit": 1700000000436109, "func": "pthread_region_7 [{driver.c} {77,0}-{121,0}]", "entry": 1700000000410693, "event_id": "1:0:29335", "is_anomaly": false}, {"fid": 3, "exit": 1700000000439884, "func": "pthread_region_3 [{driver.c} {37,0}-{81,0}]", "entry": 1700000000406918, "event_id": "1:0:29325", "is_anomaly": false}, {"fid": 1, "exit": 1700000000442719, "func": "MPI_Collective_1()", "entry": 1700000000404083, "event_id": "1:0:29315", "is_anomaly": false}, {"fid": 0, "exit": 0, "func": ".TAU application", "entry": 1699999999999999, "event_id": "1:0:0", "is_anomaly": false}], "gpu_parent": null, "event_window": {"comm_window": [{"pid": 0, "rid": 1, "src": 1, "tag": 0, "tar": 2, "tid": 0, "type": "SEND", "bytes": 131072, "timestamp": 1700000000403439, "execdata_key": "1:0:29371"}, {"pid": 0, "rid": 1, "src": 2, "tag": 1, "tar": 1, "tid": 0, "type": "RECV", "bytes": 16, "timestamp": 1700000000418147, "execdata_key": "1:0:29385"}, {"pid": 0, "rid": 1, "src": 1, "tag": 2, "tar": 3, "tid": 0, "type": "SEND", "bytes": 256, "timestamp": 1700000000428757, "execdata_key": "1:0:29398"}, {"pid": 0, "rid": 1, "src": 3, "tag": 3, "tar": 1, "tid": 0, "type": "RECV", "bytes": 64, "timestamp": 1700000000448304, "execdata_key": "1:0:29410"}], "exec_window": [{"fid": 36, "exit": 1700000000390901, "func": "void LAMMPS_NS::PairLJCut::compute_36(int, int) [{pair_lj_cut.cpp} {367,1}-{411,1}]", "entry": 1700000000387153, "event_id": "1:0:29363", "is_anomaly": false, "parent_event_id": "1:0:29335"}, {"fid": 35, "exit": 1700000000398501, "func": "pthread_region_35 [{driver.c} {357,0}-{401,0}]", "entry": 1700000000390920, "event_id": "1:0:29365", "is_anomaly": false, "parent_event_id": "1:0:29335"}, {"fid": 34, "exit": 1700000000403434, "func": "double solver::Grid<double, 3>::relax_34(const Field&, Field&) [{relax.hpp} {347,3}-{391,3}]", "entry": 1700000000398508, "event_id": "1:0:29368", "is_anomaly": false, "parent_event_id": "1:0:29335"}, {"fid": 33, "exit": 1700000000406400, "func": "MPI_Collective_33()", "entry": 1700000000403438, "event_id": "1:0:29371", "is_anomaly": false, "parent_event_id": "1:0:29335"}, {"fid": 32, "exit": 1700000000410446, "func": "void LAMMPS_NS::PairLJCut::compute_32(int, int) [{pair_lj_cut.cpp} {327,1}-{371,1}]", "entry": 1700000000406405, "event_id": "1:0:29374", "is_anomaly": false, "parent_event_id": "1:0:29335"}, {"fid": 31, "exit": 1700000000413095, "func": "pthread_region_31 [{driver.c} {317,0}-{361,0}]", "entry": 1700000000410452, "event_id": "1:0:29377", "is_anomaly": false, "parent_event_id": "1:0:29335"}, {"fid": 30, "exit": 1700000000414787, "func": "double solver::Grid<double, 3>::relax_30(const Field&, Field&) [{relax.hpp} {307,3}-{351,3}]", "entry": 1700000000413112, "event_id": "1:0:29380", "is_anomaly": false, "parent_event_id": "1:0:29335"}, {"fid": 29, "exit": 1700000000418136, "func": "MPI_Collective_29()", "entry": 1700000000414806, "event_id": "1:0:29383", "is_anomaly": false, "parent_event_id": "1:0:29335"}, {"fid": 28, "exit": 1700000000420610, "func": "void LAMMPS_NS::PairLJCut::compute_28(int, int) [{pair_lj_cut.cpp} {287,1}-{331,1}]", "entry": 1700000000418146, "event_id": "1:0:29385", "is_anomaly": false, "parent_event_id": "1:0:29335"}, {"fid": 27, "exit": 1700000000423044, "func": "pthread_region_27 [{driver.c} {277,0}-{321,0}]", "entry": 1700000000420623, "event_id": "1:0:29387", "is_anomaly": false, "parent_event_id": "1:0:29335"}, {"fid": 19, "exit": 1700000000423754, "func": "pthread_region_19 [{driver.c} {197,0}-{241,0}]", "entry": 1700000000423048, "event_id": "1:0:29390", "is_anomaly": true, "parent_event_id": "1:0:29335"}, {"fid": 27, "exit": 1700000000424965, "func": "pthread_region_27 [{driver.c} {277,0}-{321,0}]", "entry": 1700000000423771, "event_id": "1:0:29393", "is_anomaly": false, "parent_event_id": "1:0:29335"}, {"fid": 29, "exit": 1700000000428750, "func": "MPI_Collective_29()", "entry": 1700000000424979, "event_id": "1:0:29396", "is_anomaly": false, "parent_event_id": "1:0:29335"}, {"fid": 31, "exit": 1700000000431764, "func": "pthread_region_31 [{driver.c} {317,0}-{361,0}]", "entry": 1700000000428756, "event_id": "1:0:29398", "is_anomaly": false, "parent_event_id": "1:0:29396"}, {"fid": 33, "exit": 1700000000433370, "func": "MPI_Collective_33()", "entry": 1700000000428758, "event_id": "1:0:29400", "is_anomaly": false, "parent_event_id": "1:0:29335"}, {"fid": 35, "exit": 1700000000439424, "func": "pthread_region_35 [{driver.c} {357,0}-{401,0}]", "entry": 1700000000433379, "event_id": "1:0:29403", "is_anomaly": false, "parent_event_id": "1:0:29335"}, {"fid": 37, "exit": 1700000000445619, "func": "MPI_Collective_37()", "entry": 1700000000439435, "event_id": "1:0:29406", "is_anomaly": false, "parent_event_id": "1:0:29403"}, {"fid": 39, "exit": 1700000000448292, "func": "pthread_region_39 [{driver.c} {397,0}-{441,0}]", "entry": 1700000000439453, "event_id": "1:0:29408", "is_anomaly": false, "parent_event_id": "1:0:29335"}, {"fid": 9, "exit": 1700000000448538, "func": "MPI_Collective_9()", "entry": 1700000000448303, "event_id": "1:0:29410", "is_anomaly": false, "parent_event_id": "1:0:29335"}, {"fid": 11, "exit": 1700000000448737, "func": "pthread_region_11 [{driver.c} {117,0}-{161,0}]", "entry": 1700000000448550, "event_id": "1:0:29413", "is_anomaly": false, "parent_event_id": "1:0:29410"}, {"fid": 13, "exit": 1700000000448850, "func": "MPI_Collective_13()", "entry": 1700000000448561, "event_id": "1:0:29415", "is_anomaly": false, "parent_event_id": "1:0:29335"}]}, "gpu_location": null, "counter_events": [{"ts": 1700000000423754, "pid": 0, "rid": 1, "tid": 0, "counter_idx": 17, "counter_name": "PAPI_TOT_INS", "counter_value": 135440591207}]}', NULL, 'gpu', 190, 19);
INSERT INTO chimbuko.executions VALUES (1, 0, 2, 19, 3, 0, 0, true, false, 20, 1336, 18.856033040151626, 1700000000493761, 1700000000495097, 1336, 'confirmed', 'node0000', 1336, 1700000000000000, 1700000001000000, 87213, 0, 2, 1, NULL, '', '{"why": "took 1.34 ms, usually 1.32 ms; flagged during the run and confirmed at the end", "call_stack": [{"fid": 25, "exit": 1700000000495097, "func": "MPI_Collective_25()", "entry": 1700000000493761, "event_id": "2:0:87213", "is_anomaly": true}, {"fid": 5, "exit": 1700000000507034, "func": "MPI_Collective_5()", "entry": 1700000000481824, "event_id": "2:0:87162", "is_anomaly": false}, {"fid": 3, "exit": 1700000000509510, "func": "pthread_region_3 [{driver.c} {37,0}-{81,0}]", "entry": 1700000000479348, "event_id": "2:0:87147", "is_anomaly": false}, {"fid": 1, "exit": 1700000000513967, "func": "MPI_Collective_1()", "entry": 1700000000474891, "event_id": "2:0:87140", "is_anomaly": false}, {"fid": 0, "exit": 0, "func": ".TAU application", "entry": 1699999999999998, "event_id": "2:0:0", "is_anomaly": false}], "gpu_parent": {"tid": 1, "event_id": "2:0:87162", "call_stack": [{"fid": 5, "exit": 1700000000507034, "func": "MPI_Collective_5()", "entry": 1700000000481824, "event_id": "2:0:87162", "is_anomaly": false}, {"fid": 3, "exit": 1700000000509510, "func": "pthread_region_3 [{driver.c} {37,0}-{81,0}]", "entry": 1700000000479348, "event_id": "2:0:87147", "is_anomaly": false}, {"fid": 1, "exit": 1700000000513967, "func": "MPI_Collective_1()", "entry": 1700000000474891, "event_id": "2:0:87140", "is_anomaly": false}, {"fid": 0, "exit": 0, "func": ".TAU application", "entry": 1699999999999998, "event_id": "2:0:0", "is_anomaly": false}]}, "event_window": {"comm_window": [{"pid": 0, "rid": 2, "src": 2, "tag": 0, "tar": 3, "tid": 0, "type": "SEND", "bytes": 4096, "timestamp": 1700000000449459, "execdata_key": "2:0:87195"}, {"pid": 0, "rid": 2, "src": 3, "tag": 1, "tar": 2, "tid": 0, "type": "RECV", "bytes": 16, "timestamp": 1700000000485822, "execdata_key": "2:0:87208"}, {"pid": 0, "rid": 2, "src": 2, "tag": 2, "tar": 4, "tid": 0, "type": "SEND", "bytes": 65536, "timestamp": 1700000000501754, "execdata_key": "2:0:87219"}, {"pid": 0, "rid": 2, "src": 4, "tag": 3, "tar": 2, "tid": 0, "type": "RECV", "bytes": 262144, "timestamp": 1700000000511348, "execdata_key": "2:0:87233"}], "exec_window": [{"fid": 10, "exit": 1700000000449170, "func": "double solver::Grid<double, 3>::relax_10(const Field&, Field&) [{relax.hpp} {107,3}-{151,3}]", "entry": 1700000000449037, "event_id": "2:0:87186", "is_anomaly": false, "parent_event_id": "2:0:87162"}, {"fid": 9, "exit": 1700000000449338, "func": "MPI_Collective_9()", "entry": 1700000000449189, "event_id": "2:0:87189", "is_anomaly": false, "parent_event_id": "2:0:87162"}, {"fid": 8, "exit": 1700000000449446, "func": "void LAMMPS_NS::PairLJCut::compute_8(int, int) [{pair_lj_cut.cpp} {87,1}-{131,1}]", "entry": 1700000000449353, "event_id": "2:0:87192", "is_anomaly": false, "parent_event_id": "2:0:87162"}, {"fid": 39, "exit": 1700000000455574, "func": "pthread_region_39 [{driver.c} {397,0}-{441,0}]", "entry": 1700000000449458, "event_id": "2:0:87195", "is_anomaly": false, "parent_event_id": "2:0:87162"}, {"fid": 38, "exit": 1700000000466115, "func": "double solver::Grid<double, 3>::relax_38(const Field&, Field&) [{relax.hpp} {387,3}-{431,3}]", "entry": 1700000000455587, "event_id": "2:0:87197", "is_anomaly": false, "parent_event_id": "2:0:87162"}, {"fid": 37, "exit": 1700000000472233, "func": "MPI_Collective_37()", "entry": 1700000000466122, "event_id": "2:0:87200", "is_anomaly": false, "parent_event_id": "2:0:87162"}, {"fid": 36, "exit": 1700000000481416, "func": "void LAMMPS_NS::PairLJCut::compute_36(int, int) [{pair_lj_cut.cpp} {367,1}-{411,1}]", "entry": 1700000000472241, "event_id": "2:0:87202", "is_anomaly": false, "parent_event_id": "2:0:87162"}, {"fid": 35, "exit": 1700000000485801, "func": "pthread_region_35 [{driver.c} {357,0}-{401,0}]", "entry": 1700000000481435, "event_id": "2:0:87205", "is_anomaly": false, "parent_event_id": "2:0:87162"}, {"fid": 34, "exit": 1700000000490179, "func": "double solver::Grid<double, 3>::relax_34(const Field&, Field&) [{relax.hpp} {347,3}-{391,3}]", "entry": 1700000000485821, "event_id": "2:0:87208", "is_anomaly": false, "parent_event_id": "2:0:87162"}, {"fid": 33, "exit": 1700000000493757, "func": "MPI_Collective_33()", "entry": 1700000000490186, "event_id": "2:0:87211", "is_anomaly": false, "parent_event_id": "2:0:87162"}, {"fid": 25, "exit": 1700000000495097, "func": "MPI_Collective_25()", "entry": 1700000000493761, "event_id": "2:0:87213", "is_anomaly": true, "parent_event_id": "2:0:87162"}, {"fid": 33, "exit": 1700000000499519, "func": "MPI_Collective_33()", "entry": 1700000000495101, "event_id": "2:0:87215", "is_anomaly": false, "parent_event_id": "2:0:87162"}, {"fid": 35, "exit": 1700000000501736, "func": "pthread_region_35 [{driver.c} {357,0}-{401,0}]", "entry": 1700000000499522, "event_id": "2:0:87217", "is_anomaly": false, "parent_event_id": "2:0:87162"}, {"fid": 37, "exit": 1700000000510555, "func": "MPI_Collective_37()", "entry": 1700000000501753, "event_id": "2:0:87219", "is_anomaly": false, "parent_event_id": "2:0:87217"}, {"fid": 39, "exit": 1700000000510945, "func": "pthread_region_39 [{driver.c} {397,0}-{441,0}]", "entry": 1700000000501761, "event_id": "2:0:87222", "is_anomaly": false, "parent_event_id": "2:0:87162"}, {"fid": 9, "exit": 1700000000511143, "func": "MPI_Collective_9()", "entry": 1700000000510958, "event_id": "2:0:87225", "is_anomaly": false, "parent_event_id": "2:0:87162"}, {"fid": 11, "exit": 1700000000511263, "func": "pthread_region_11 [{driver.c} {117,0}-{161,0}]", "entry": 1700000000511163, "event_id": "2:0:87228", "is_anomaly": false, "parent_event_id": "2:0:87225"}, {"fid": 13, "exit": 1700000000511334, "func": "MPI_Collective_13()", "entry": 1700000000511179, "event_id": "2:0:87231", "is_anomaly": false, "parent_event_id": "2:0:87162"}, {"fid": 15, "exit": 1700000000511745, "func": "pthread_region_15 [{driver.c} {157,0}-{201,0}]", "entry": 1700000000511347, "event_id": "2:0:87233", "is_anomaly": false, "parent_event_id": "2:0:87162"}, {"fid": 17, "exit": 1700000000512450, "func": "MPI_Collective_17()", "entry": 1700000000511755, "event_id": "2:0:87236", "is_anomaly": false, "parent_event_id": "2:0:87233"}, {"fid": 19, "exit": 1700000000512061, "func": "pthread_region_19 [{driver.c} {197,0}-{241,0}]", "entry": 1700000000511772, "event_id": "2:0:87239", "is_anomaly": false, "parent_event_id": "2:0:87162"}]}, "gpu_location": {"device": 2, "stream": 3, "thread": 4, "context": 1}, "counter_events": [{"ts": 1700000000495097, "pid": 0, "rid": 2, "tid": 0, "counter_idx": 17, "counter_name": "PAPI_TOT_INS", "counter_value": 935055216693}]}', NULL, 'fast', 250, 25);

INSERT INTO chimbuko.functions VALUES (1, 0, 1, 33, 'MPI_Collective_33()');
INSERT INTO chimbuko.functions VALUES (1, 0, 2, 0, '.TAU application');
INSERT INTO chimbuko.functions VALUES (1, 0, 3, 1, 'MPI_Collective_1()');
INSERT INTO chimbuko.functions VALUES (1, 0, 4, 2, 'double solver::Grid<double, 3>::relax_2(const Field&, Field&) [{relax.hpp} {27,3}-{71,3}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 5, 6, 'double solver::Grid<double, 3>::relax_6(const Field&, Field&) [{relax.hpp} {67,3}-{111,3}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 6, 18, 'double solver::Grid<double, 3>::relax_18(const Field&, Field&) [{relax.hpp} {187,3}-{231,3}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 7, 17, 'MPI_Collective_17()');
INSERT INTO chimbuko.functions VALUES (1, 0, 8, 16, 'void LAMMPS_NS::PairLJCut::compute_16(int, int) [{pair_lj_cut.cpp} {167,1}-{211,1}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 9, 15, 'pthread_region_15 [{driver.c} {157,0}-{201,0}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 10, 14, 'double solver::Grid<double, 3>::relax_14(const Field&, Field&) [{relax.hpp} {147,3}-{191,3}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 11, 13, 'MPI_Collective_13()');
INSERT INTO chimbuko.functions VALUES (1, 0, 12, 12, 'void LAMMPS_NS::PairLJCut::compute_12(int, int) [{pair_lj_cut.cpp} {127,1}-{171,1}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 13, 11, 'pthread_region_11 [{driver.c} {117,0}-{161,0}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 14, 10, 'double solver::Grid<double, 3>::relax_10(const Field&, Field&) [{relax.hpp} {107,3}-{151,3}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 15, 9, 'MPI_Collective_9()');
INSERT INTO chimbuko.functions VALUES (1, 0, 16, 19, 'pthread_region_19 [{driver.c} {197,0}-{241,0}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 17, 21, 'MPI_Collective_21()');
INSERT INTO chimbuko.functions VALUES (1, 0, 18, 23, 'pthread_region_23 [{driver.c} {237,0}-{281,0}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 19, 25, 'MPI_Collective_25()');
INSERT INTO chimbuko.functions VALUES (1, 0, 20, 27, 'pthread_region_27 [{driver.c} {277,0}-{321,0}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 21, 3, 'pthread_region_3 [{driver.c} {37,0}-{81,0}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 22, 7, 'pthread_region_7 [{driver.c} {77,0}-{121,0}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 23, 36, 'void LAMMPS_NS::PairLJCut::compute_36(int, int) [{pair_lj_cut.cpp} {367,1}-{411,1}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 24, 35, 'pthread_region_35 [{driver.c} {357,0}-{401,0}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 25, 34, 'double solver::Grid<double, 3>::relax_34(const Field&, Field&) [{relax.hpp} {347,3}-{391,3}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 26, 32, 'void LAMMPS_NS::PairLJCut::compute_32(int, int) [{pair_lj_cut.cpp} {327,1}-{371,1}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 27, 31, 'pthread_region_31 [{driver.c} {317,0}-{361,0}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 28, 30, 'double solver::Grid<double, 3>::relax_30(const Field&, Field&) [{relax.hpp} {307,3}-{351,3}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 29, 29, 'MPI_Collective_29()');
INSERT INTO chimbuko.functions VALUES (1, 0, 30, 28, 'void LAMMPS_NS::PairLJCut::compute_28(int, int) [{pair_lj_cut.cpp} {287,1}-{331,1}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 31, 37, 'MPI_Collective_37()');
INSERT INTO chimbuko.functions VALUES (1, 0, 32, 39, 'pthread_region_39 [{driver.c} {397,0}-{441,0}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 33, 5, 'MPI_Collective_5()');
INSERT INTO chimbuko.functions VALUES (1, 0, 34, 8, 'void LAMMPS_NS::PairLJCut::compute_8(int, int) [{pair_lj_cut.cpp} {87,1}-{131,1}]');
INSERT INTO chimbuko.functions VALUES (1, 0, 35, 38, 'double solver::Grid<double, 3>::relax_38(const Field&, Field&) [{relax.hpp} {387,3}-{431,3}]');

INSERT INTO chimbuko.models VALUES (1, 0, 1, 1, '{"histogram":{"Histogram Bin Counts":[2,3,4,7,10,16,24,37,55,80,115,165,231,320,438,590,785,1029,1331,1697,2134,2646,3237,3904,4645,5449,6304,7194,8095,8984,9833,10613,11298,11860,12279,12538,12625,12538,12279,11860,11298,10613,9833,8984,8095,7194,6304,5449,4645,3904,3237,2646,2134,1697,1331,1029,785,590,438,320,231,165,115,80,55,37,24,16,10,7,4,3,2,1,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"Histogram Bin Edges":[0,201.4,402.8,604.2,805.6,1007,1208.4,1409.8,1611.2,1812.6,2014,2215.4,2416.8,2618.2,2819.6,3020.99,3222.39,3423.79,3625.19,3826.59,4027.99,4229.39,4430.79,4632.19,4833.59,5034.99,5236.39,5437.79,5639.19,5840.59,6041.99,6243.39,6444.79,6646.19,6847.59,7048.99,7250.39,7451.79,7653.19,7854.59,8055.99,8257.39,8458.79,8660.19,8861.58,9062.98,9264.38,9465.78,9667.18,9868.58,10069.98,10271.38,10472.78,10674.18,10875.58,11076.98,11278.38,11479.78,11681.18,11882.58,12083.98,12285.38,12486.78,12688.18,12889.58,13090.98,13292.38,13493.78,13695.18,13896.58,14097.98,14299.38,14500.78,14702.17,14903.57,15104.97,15306.37,15507.77,15709.17,15910.57,16111.97,16313.37,16514.77,16716.17,16917.57,17118.97,17320.37,17521.77,17723.17,17924.57,18125.97,18327.37,18528.77,18730.17,18931.57,19132.97,19334.37,19535.77,19737.17,19938.57,20139.97,20341.37,20542.77,20744.16,20945.56,21146.96,21348.36,21549.76,21751.16,21952.56,22153.96]},"internal_global_threshold":10.3125}');
INSERT INTO chimbuko.models VALUES (1, 0, 16, 1, '{"histogram":{"Histogram Bin Counts":[1,2,3,5,8,12,18,28,41,60,87,124,174,241,330,445,591,775,1003,1278,1608,1994,2439,2942,3499,4105,4750,5420,6099,6769,7408,7996,8512,8936,9252,9447,9512,9447,9252,8936,8512,7996,7408,6769,6099,5420,4750,4105,3499,2942,2439,1994,1608,1278,1003,775,591,445,330,241,174,124,87,60,41,28,18,12,8,5,3,2,1,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"Histogram Bin Edges":[0,28.46,56.93,85.39,113.85,142.32,170.78,199.24,227.71,256.17,284.64,313.1,341.56,370.03,398.49,426.95,455.42,483.88,512.34,540.81,569.27,597.73,626.2,654.66,683.13,711.59,740.05,768.52,796.98,825.44,853.91,882.37,910.83,939.3,967.76,996.22,1024.69,1053.15,1081.61,1110.08,1138.54,1167.01,1195.47,1223.93,1252.4,1280.86,1309.32,1337.79,1366.25,1394.71,1423.18,1451.64,1480.1,1508.57,1537.03,1565.49,1593.96,1622.42,1650.89,1679.35,1707.81,1736.28,1764.74,1793.2,1821.67,1850.13,1878.59,1907.06,1935.52,1963.98,1992.45,2020.91,2049.38,2077.84,2106.3,2134.77,2163.23,2191.69,2220.16,2248.62,2277.08,2305.55,2334.01,2362.47,2390.94,2419.4,2447.86,2476.33,2504.79,2533.26,2561.72,2590.18,2618.65,2647.11,2675.57,2704.04,2732.5,2760.96,2789.43,2817.89,2846.35,2874.82,2903.28,2931.74,2960.21,2988.67,3017.14,3045.6,3074.06,3102.53,3130.99]},"internal_global_threshold":9.4375}');
INSERT INTO chimbuko.models VALUES (1, 0, 19, 1, '{"histogram":{"Histogram Bin Counts":[1,2,3,5,8,13,20,30,44,64,93,133,187,259,353,476,633,830,1073,1369,1721,2135,2611,3150,3747,4396,5086,5803,6530,7247,7932,8562,9114,9568,9906,10115,10185,10115,9906,9568,9114,8562,7932,7247,6530,5803,5086,4396,3747,3150,2611,2135,1721,1369,1073,830,633,476,353,259,187,133,93,64,44,30,20,13,8,5,3,2,1,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"Histogram Bin Edges":[0,65.84,131.68,197.51,263.35,329.19,395.03,460.87,526.7,592.54,658.38,724.22,790.05,855.89,921.73,987.57,1053.41,1119.24,1185.08,1250.92,1316.76,1382.6,1448.43,1514.27,1580.11,1645.95,1711.79,1777.62,1843.46,1909.3,1975.14,2040.98,2106.81,2172.65,2238.49,2304.33,2370.16,2436,2501.84,2567.68,2633.52,2699.35,2765.19,2831.03,2896.87,2962.71,3028.54,3094.38,3160.22,3226.06,3291.9,3357.73,3423.57,3489.41,3555.25,3621.08,3686.92,3752.76,3818.6,3884.44,3950.27,4016.11,4081.95,4147.79,4213.63,4279.46,4345.3,4411.14,4476.98,4542.82,4608.65,4674.49,4740.33,4806.17,4872,4937.84,5003.68,5069.52,5135.36,5201.19,5267.03,5332.87,5398.71,5464.55,5530.38,5596.22,5662.06,5727.9,5793.74,5859.57,5925.41,5991.25,6057.09,6122.93,6188.76,6254.6,6320.44,6386.28,6452.11,6517.95,6583.79,6649.63,6715.47,6781.3,6847.14,6912.98,6978.82,7044.66,7110.49,7176.33,7242.17]},"internal_global_threshold":9.8125}');
INSERT INTO chimbuko.models VALUES (1, 0, 27, 1, '{"histogram":{"Histogram Bin Counts":[1,2,4,6,10,15,23,34,51,74,107,153,215,298,407,549,730,957,1238,1578,1984,2461,3010,3631,4319,5067,5863,6690,7528,8355,9144,9870,10506,11030,11420,11660,11741,11660,11420,11030,10506,9870,9144,8355,7528,6690,5863,5067,4319,3631,3010,2461,1984,1578,1238,957,730,549,407,298,215,153,107,74,51,34,23,15,10,6,4,2,1,1,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"Histogram Bin Edges":[0,152.29,304.57,456.86,609.15,761.44,913.72,1066.01,1218.3,1370.58,1522.87,1675.16,1827.44,1979.73,2132.02,2284.31,2436.59,2588.88,2741.17,2893.45,3045.74,3198.03,3350.32,3502.6,3654.89,3807.18,3959.46,4111.75,4264.04,4416.33,4568.61,4720.9,4873.19,5025.47,5177.76,5330.05,5482.33,5634.62,5786.91,5939.2,6091.48,6243.77,6396.06,6548.34,6700.63,6852.92,7005.21,7157.49,7309.78,7462.07,7614.35,7766.64,7918.93,8071.22,8223.5,8375.79,8528.08,8680.36,8832.65,8984.94,9137.22,9289.51,9441.8,9594.09,9746.37,9898.66,10050.95,10203.23,10355.52,10507.81,10660.1,10812.38,10964.67,11116.96,11269.24,11421.53,11573.82,11726.1,11878.39,12030.68,12182.97,12335.25,12487.54,12639.83,12792.11,12944.4,13096.69,13248.98,13401.26,13553.55,13705.84,13858.12,14010.41,14162.7,14314.99,14467.27,14619.56,14771.85,14924.13,15076.42,15228.71,15380.99,15533.28,15685.57,15837.86,15990.14,16142.43,16294.72,16447,16599.29,16751.58]},"internal_global_threshold":10.1875}');

INSERT INTO chimbuko.numbering VALUES (1, 1);

INSERT INTO chimbuko.paths VALUES (1, 0, 1, '{2,3,4,5,1}');
INSERT INTO chimbuko.paths VALUES (1, 0, 2, '{2,3,21,22,16}');
INSERT INTO chimbuko.paths VALUES (1, 0, 3, '{2,3,21,33,19}');
INSERT INTO chimbuko.paths VALUES (1, 0, 4, '{2,3,21,22,27}');

INSERT INTO chimbuko.rollups VALUES (1, 0, 1, 1, 0, 'node0000', 1, 35256, 39283, 39283, 9.868906588808471, 1700000000324717, 1700000000364000, 'fast');
INSERT INTO chimbuko.rollups VALUES (1, 0, 16, 2, 1, 'node0000', 1, 137, 706, 706, 13.480547670269829, 1700000000423048, 1700000000423754, 'gpu');
INSERT INTO chimbuko.rollups VALUES (1, 0, 19, 3, 2, 'node0000', 1, 20, 1336, 1336, 18.856033040151626, 1700000000493761, 1700000000495097, 'fast');

INSERT INTO chimbuko.runs VALUES (1, 'run', 'finished', '0001-01-01 00:00:00+00', NULL, NULL);

INSERT INTO chimbuko.samples VALUES (1, 0, 1, 1699999999750000, '[{"field": "Memory Available (MB)", "value": 64000}, {"field": "Memory Footprint (VmRSS) (KB)", "value": 1800000}, {"field": "cpu: User %", "value": 90}, {"field": "cpu: System %", "value": 0}]');

INSERT INTO chimbuko.schema_version VALUES (12);

SELECT pg_catalog.setval('chimbuko.runs_run_seq', 1, true);

ALTER TABLE ONLY chimbuko.activity
    ADD CONSTRAINT activity_pkey PRIMARY KEY (run);

ALTER TABLE ONLY chimbuko.clocks
    ADD CONSTRAINT clocks_pkey PRIMARY KEY (run, pid, rid);

ALTER TABLE ONLY chimbuko.collectives
    ADD CONSTRAINT collectives_pkey PRIMARY KEY (run, collective);

ALTER TABLE ONLY chimbuko.counter_stats
    ADD CONSTRAINT counter_stats_pkey PRIMARY KEY (run, app, counter);

ALTER TABLE ONLY chimbuko.efficiency
    ADD CONSTRAINT efficiency_pkey PRIMARY KEY (run, pid, entire, from_s);

ALTER TABLE ONLY chimbuko.executions
    ADD CONSTRAINT executions_pkey PRIMARY KEY (run, rid, ev_step, ev_row, pid, ev_text);

ALTER TABLE ONLY chimbuko.final_models
    ADD CONSTRAINT final_models_pkey PRIMARY KEY (run, pid, fn);

ALTER TABLE ONLY chimbuko.findings
    ADD CONSTRAINT findings_pkey PRIMARY KEY (run, finding);

ALTER TABLE ONLY chimbuko.functions
    ADD CONSTRAINT functions_pkey PRIMARY KEY (run, pid, fn);

ALTER TABLE ONLY chimbuko.links
    ADD CONSTRAINT links_pkey PRIMARY KEY (run, event_id, pid);

ALTER TABLE ONLY chimbuko.models
    ADD CONSTRAINT models_pkey PRIMARY KEY (run, pid, fn, model);

ALTER TABLE ONLY chimbuko.numbering
    ADD CONSTRAINT numbering_pkey PRIMARY KEY (run);

ALTER TABLE ONLY chimbuko.path_profiles
    ADD CONSTRAINT path_profiles_pkey PRIMARY KEY (run, pid, path);

ALTER TABLE ONLY chimbuko.paths
    ADD CONSTRAINT paths_pkey PRIMARY KEY (run, pid, path);

ALTER TABLE ONLY chimbuko.profiles
    ADD CONSTRAINT profiles_pkey PRIMARY KEY (run, pid, fn);

ALTER TABLE ONLY chimbuko.rank_loads
    ADD CONSTRAINT rank_loads_pkey PRIMARY KEY (run, pid, rid, tid, device);

ALTER TABLE ONLY chimbuko.rollups
    ADD CONSTRAINT rollups_pkey PRIMARY KEY (run, pid, fn, path, rid, kind);

ALTER TABLE ONLY chimbuko.runs
    ADD CONSTRAINT runs_name_key UNIQUE (name);

ALTER TABLE ONLY chimbuko.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (run);

ALTER TABLE ONLY chimbuko.samples
    ADD CONSTRAINT samples_pkey PRIMARY KEY (run, pid, sample);

ALTER TABLE ONLY chimbuko.slow_peers
    ADD CONSTRAINT slow_peers_pkey PRIMARY KEY (run, slow_peer);

CREATE INDEX executions_entry ON chimbuko.executions USING btree (run, entry);

CREATE UNIQUE INDEX executions_event ON chimbuko.executions USING btree (run, (
CASE
    WHEN (ev_text = ''::text) THEN (((((rid)::text || ':'::text) || (ev_step)::text) || ':'::text) || (ev_row)::text)
    ELSE ev_text
END), pid);

CREATE INDEX executions_function ON chimbuko.executions USING btree (run, pid, fn);

CREATE INDEX executions_lost ON chimbuko.executions USING btree (run, lost_time) WHERE anomalous;

CREATE INDEX executions_score ON chimbuko.executions USING btree (run, outlier_score) WHERE anomalous;

CREATE INDEX executions_severity ON chimbuko.executions USING btree (run, outlier_severity) WHERE anomalous;

CREATE INDEX executions_step ON chimbuko.executions USING brin (run, io_step) WITH (pages_per_range='32', autosummarize='on');

CREATE INDEX functions_fid ON chimbuko.functions USING btree (run, pid, fid);

CREATE INDEX gpu_times_run ON chimbuko.gpu_times USING btree (run, pid, rid);

CREATE INDEX links_culprit ON chimbuko.links USING btree (run, culprit_event_id) WHERE (culprit_event_id IS NOT NULL);

CREATE INDEX links_finding ON chimbuko.links USING btree (run, finding);

CREATE INDEX load_windows_rank ON chimbuko.load_windows USING btree (run, pid, rid);

CREATE INDEX metadata_step ON chimbuko.metadata USING btree (run, pid, rid, io_step);

