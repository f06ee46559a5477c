-- Times are microseconds since the trace's epoch. Values that many records share are
-- stored once and referenced by number: functions (fn), call paths (path), models (model),
-- states of nodes (sample).

CREATE TABLE runs (
    run      INTEGER NOT NULL,
    name     VARCHAR NOT NULL,
    state    VARCHAR NOT NULL,
    started  TIMESTAMP NOT NULL,
    finished TIMESTAMP,
    info     JSON
);

CREATE TABLE functions (
    run  INTEGER NOT NULL,
    pid  INTEGER NOT NULL,
    fn   INTEGER NOT NULL, -- 1, 2, 3 … within the program
    fid  BIGINT NOT NULL, -- number in the provenance schema
    name VARCHAR NOT NULL
);

CREATE TABLE paths (
    run  INTEGER NOT NULL,
    pid  INTEGER NOT NULL,
    path INTEGER NOT NULL,
    fns  INTEGER[] NOT NULL -- from the outermost function to the execution itself
);

CREATE TABLE models (
    run    INTEGER NOT NULL,
    pid    INTEGER NOT NULL,
    fn     INTEGER NOT NULL,
    model  INTEGER NOT NULL, -- version
    params JSON NOT NULL
);

CREATE TABLE final_models (
    run   INTEGER NOT NULL,
    pid   INTEGER NOT NULL,
    fn    INTEGER NOT NULL,
    model INTEGER -- null for none
);

CREATE TABLE samples ( -- states of nodes
    run         INTEGER NOT NULL,
    pid         INTEGER NOT NULL,
    sample      INTEGER NOT NULL,
    "timestamp" BIGINT NOT NULL,
    state       STRUCT(field VARCHAR, "value" UBIGINT)[] NOT NULL
);

-- In nested columns, "at" is relative to the entry of the execution, "duration" is null for
-- open calls, and "step" and "row" are relative to those of the execution's id. Views have
-- absolute values.
CREATE TABLE executions (
    run               INTEGER NOT NULL,
    pid               INTEGER NOT NULL,
    rid               INTEGER NOT NULL,
    ev_step           INTEGER NOT NULL,
    ev_row            BIGINT NOT NULL,
    ev_text           VARCHAR, -- event id, if not rank:step:row
    anomalous         BOOLEAN NOT NULL, -- collection: anomalies or normalexecs
    fn                INTEGER NOT NULL,
    path              INTEGER NOT NULL,
    model             INTEGER, -- null for none
    tid               BIGINT NOT NULL,
    hostname          VARCHAR NOT NULL,
    entry             BIGINT NOT NULL,
    "exit"            BIGINT NOT NULL,
    runtime_exclusive BIGINT NOT NULL,
    runtime_total     BIGINT NOT NULL,
    lost_time         BIGINT NOT NULL,
    io_step           INTEGER NOT NULL,
    io_step_tstart    BIGINT NOT NULL,
    io_step_tend      BIGINT NOT NULL,
    outlier_score     DOUBLE NOT NULL,
    outlier_severity  DOUBLE NOT NULL,
    status            VARCHAR,
    is_gpu_event      BOOLEAN NOT NULL,
    version           INTEGER NOT NULL,
    call_stack        STRUCT(fn INTEGER, step INTEGER, "row" BIGINT, "at" BIGINT, duration BIGINT, anomalous BOOLEAN)[],
    exec_window       STRUCT(fn INTEGER, step INTEGER, "row" BIGINT, parent_step INTEGER, parent_row BIGINT, "at" BIGINT, duration BIGINT, anomalous BOOLEAN)[],
    comm_window       STRUCT(received BOOLEAN, partner INTEGER, bytes UBIGINT, tag INTEGER, "at" BIGINT, step INTEGER, "row" BIGINT)[],
    counter_events    STRUCT(idx BIGINT, name VARCHAR, "value" UBIGINT, "at" BIGINT)[],
    sample            INTEGER, -- state of the node; null for none
    gpu_location      STRUCT(context UBIGINT, device UBIGINT, stream UBIGINT, thread BIGINT),
    gpu_parent_tid    BIGINT,
    gpu_parent_stack  STRUCT(fn INTEGER, step INTEGER, "row" BIGINT, "at" BIGINT, duration BIGINT, anomalous BOOLEAN)[],
    gpu_parent_error  VARCHAR,
    doc               JSON, -- the document, if the columns cannot represent it
    kind              VARCHAR, -- null for typical executions
    why               VARCHAR, -- null for typical executions
    children          BIGINT NOT NULL, -- calls that it made; 0 also if unknown
    usual_children    BIGINT NOT NULL -- if it made too many calls
);

CREATE TABLE metadata (
    run     INTEGER NOT NULL,
    pid     INTEGER NOT NULL,
    rid     INTEGER NOT NULL,
    tid     BIGINT NOT NULL,
    io_step INTEGER NOT NULL,
    descr   VARCHAR NOT NULL,
    "value" VARCHAR NOT NULL
);

CREATE TABLE profiles (
    run INTEGER NOT NULL, pid INTEGER NOT NULL, fn INTEGER NOT NULL, fid BIGINT NOT NULL, fname VARCHAR NOT NULL,
    anomalies BOOLEAN NOT NULL, -- false: the columns up to severity_stddev are null
    first_io_step BIGINT, last_io_step BIGINT, min_timestamp BIGINT, max_timestamp BIGINT,
    anomaly_accumulate DOUBLE, anomaly_count DOUBLE, anomaly_kurtosis DOUBLE, anomaly_maximum DOUBLE, anomaly_mean DOUBLE, anomaly_minimum DOUBLE, anomaly_skewness DOUBLE, anomaly_stddev DOUBLE,
    score_accumulate DOUBLE, score_count DOUBLE, score_kurtosis DOUBLE, score_maximum DOUBLE, score_mean DOUBLE, score_minimum DOUBLE, score_skewness DOUBLE, score_stddev DOUBLE,
    severity_accumulate DOUBLE, severity_count DOUBLE, severity_kurtosis DOUBLE, severity_maximum DOUBLE, severity_mean DOUBLE, severity_minimum DOUBLE, severity_skewness DOUBLE, severity_stddev DOUBLE,
    exclusive_accumulate DOUBLE, exclusive_count DOUBLE, exclusive_kurtosis DOUBLE, exclusive_maximum DOUBLE, exclusive_mean DOUBLE, exclusive_minimum DOUBLE, exclusive_skewness DOUBLE, exclusive_stddev DOUBLE,
    inclusive_accumulate DOUBLE, inclusive_count DOUBLE, inclusive_kurtosis DOUBLE, inclusive_maximum DOUBLE, inclusive_mean DOUBLE, inclusive_minimum DOUBLE, inclusive_skewness DOUBLE, inclusive_stddev DOUBLE
);

CREATE TABLE counter_stats (
    run INTEGER NOT NULL, app INTEGER NOT NULL, counter VARCHAR NOT NULL,
    accumulate DOUBLE NOT NULL, "count" DOUBLE NOT NULL, kurtosis DOUBLE NOT NULL, maximum DOUBLE NOT NULL,
    mean DOUBLE NOT NULL, minimum DOUBLE NOT NULL, skewness DOUBLE NOT NULL, stddev DOUBLE NOT NULL
);

CREATE TABLE rollups ( -- live_rollups of ended runs
    run INTEGER NOT NULL, pid INTEGER NOT NULL, fn INTEGER NOT NULL, path INTEGER NOT NULL, rid INTEGER NOT NULL, hostname VARCHAR NOT NULL,
    anomalies BIGINT NOT NULL, lost_us BIGINT NOT NULL, anomalous_us BIGINT NOT NULL, severity DOUBLE NOT NULL, score DOUBLE NOT NULL,
    first_us BIGINT NOT NULL, last_us BIGINT NOT NULL,
    kind VARCHAR DEFAULT '' -- empty for executions without a kind
);

-- Findings of a run and links between anomalies. Both are written when a run has ended, and
-- removed by records that are written later.

CREATE TABLE findings (
    run INTEGER NOT NULL, finding INTEGER NOT NULL, kind VARCHAR NOT NULL,
    form VARCHAR, -- null for none
    status VARCHAR NOT NULL, severity VARCHAR NOT NULL, program INTEGER NOT NULL, "function" VARCHAR NOT NULL, call_path VARCHAR NOT NULL,
    "role" VARCHAR, -- null for none
    cause INTEGER, -- finding; null for none
    ranks JSON NOT NULL, hosts JSON NOT NULL,
    from_s DOUBLE NOT NULL, to_s DOUBLE, -- null while it lasts
    calls BIGINT NOT NULL, of_calls BIGINT NOT NULL, expected_us DOUBLE NOT NULL, actual_us DOUBLE NOT NULL,
    period_s DOUBLE, -- null if irregular
    lost_own_us BIGINT NOT NULL, lost_caused_us BIGINT NOT NULL, lost_us BIGINT NOT NULL, share DOUBLE NOT NULL, confidence DOUBLE NOT NULL,
    summary VARCHAR NOT NULL,
    reason VARCHAR, -- null for none
    examples JSON NOT NULL, longest_us BIGINT NOT NULL,
    worst_rank INTEGER, worst_rank_lost_us BIGINT, -- null for lasting changes
    first_us BIGINT NOT NULL, last_us BIGINT NOT NULL,
    trend VARCHAR, -- null for none
    over_time JSON NOT NULL, waits BIGINT NOT NULL, wait_ranks BIGINT NOT NULL,
    late VARCHAR -- null if unknown
);

CREATE TABLE links (
    run INTEGER NOT NULL, pid INTEGER NOT NULL, rid INTEGER NOT NULL, event_id VARCHAR NOT NULL, finding INTEGER NOT NULL,
    "role" VARCHAR, -- null for none
    culprit_pid INTEGER, culprit_event_id VARCHAR, -- null if unknown
    late_rid INTEGER, -- null if unknown
    hops INTEGER NOT NULL, waits BIGINT NOT NULL, wait_ranks BIGINT NOT NULL, waits_lost_us BIGINT NOT NULL
);

-- Calls of a run by call path, over all ranks of a program.

CREATE TABLE path_profiles (
    run          INTEGER NOT NULL,
    pid          INTEGER NOT NULL,
    path         INTEGER NOT NULL,
    parent       INTEGER, -- path without its last function; null for none
    fn           INTEGER NOT NULL, -- its last function
    calls        BIGINT NOT NULL,
    exclusive_us BIGINT NOT NULL
);

-- Ranks, threads and GPUs compared with peers that do equal work. Schema 8 added these tables.

CREATE TABLE rank_loads (
    run INTEGER NOT NULL, pid INTEGER NOT NULL, rid INTEGER NOT NULL,
    tid BIGINT NOT NULL, -- -1: the entire rank
    device BOOLEAN NOT NULL, host VARCHAR NOT NULL, "role" INTEGER NOT NULL, peers INTEGER NOT NULL,
    elapsed_us BIGINT NOT NULL, useful_us BIGINT NOT NULL, wait_us BIGINT NOT NULL, sync_us BIGINT NOT NULL,
    ratio DOUBLE, -- null without peers
    "pattern" VARCHAR, from_s DOUBLE, -- null if it was not slow
    to_s DOUBLE, -- also null if it was slow to the end
    saved_us BIGINT NOT NULL, saved_share DOUBLE NOT NULL,
    functions JSON NOT NULL -- the ones with the most time
);

CREATE TABLE load_windows (
    run INTEGER NOT NULL, pid INTEGER NOT NULL, rid INTEGER NOT NULL, tid BIGINT NOT NULL, device BOOLEAN NOT NULL,
    from_s DOUBLE NOT NULL, to_s DOUBLE NOT NULL, useful_us BIGINT NOT NULL, wait_us BIGINT NOT NULL,
    ratio DOUBLE -- null without comparable work
);

CREATE TABLE efficiency (
    run INTEGER NOT NULL, pid INTEGER NOT NULL, entire BOOLEAN NOT NULL, begin_us BIGINT NOT NULL, from_s DOUBLE NOT NULL, to_s DOUBLE NOT NULL,
    ranks INTEGER NOT NULL, parallel DOUBLE NOT NULL, load_balance DOUBLE NOT NULL, communication DOUBLE NOT NULL,
    slowest_rank BIGINT NOT NULL,
    device_parallel DOUBLE, device_load_balance DOUBLE -- null without GPUs
);

CREATE TABLE slow_peers (
    run INTEGER NOT NULL, slow_peer INTEGER NOT NULL, -- from 1, the costliest first
    pid INTEGER NOT NULL, "pattern" VARCHAR NOT NULL,
    host VARCHAR, -- null unless it is a host
    ranks JSON NOT NULL, hosts JSON NOT NULL,
    tid BIGINT NOT NULL, -- -1 unless it is a thread
    device BOOLEAN NOT NULL, "role" INTEGER NOT NULL, peers INTEGER NOT NULL, weak BOOLEAN NOT NULL, ratio DOUBLE NOT NULL,
    from_s DOUBLE NOT NULL, to_s DOUBLE, -- null if it lasted to the end
    lost_own_us BIGINT NOT NULL, lost_caused_us BIGINT NOT NULL, saved_us BIGINT NOT NULL, saved_share DOUBLE NOT NULL,
    confidence DOUBLE NOT NULL, windows JSON NOT NULL, functions JSON NOT NULL, counters JSON NOT NULL,
    twin INTEGER, -- null for none
    sync_share DOUBLE NOT NULL, peer_sync_share DOUBLE NOT NULL
);

-- How the GPUs of ranks spent their time, and collective operations compared over ranks. Schema 9 added these tables.

CREATE TABLE gpu_times (
    run INTEGER NOT NULL, pid INTEGER NOT NULL, rid INTEGER NOT NULL,
    step BIGINT, -- null: the entire rank
    start_us BIGINT NOT NULL, total_us BIGINT NOT NULL, compute_us BIGINT NOT NULL, communication_us BIGINT NOT NULL, memory_us BIGINT NOT NULL,
    exposed_communication_us BIGINT NOT NULL, exposed_memory_us BIGINT NOT NULL, overlap_us BIGINT NOT NULL, idle_us BIGINT NOT NULL,
    host_wait_us BIGINT NOT NULL, kernel_wait_us BIGINT NOT NULL, other_wait_us BIGINT NOT NULL,
    streams JSON NOT NULL -- of the entire rank
);

CREATE TABLE collectives (
    run INTEGER NOT NULL, collective INTEGER NOT NULL, -- from 1
    pid INTEGER NOT NULL, operation VARCHAR NOT NULL, process_group VARCHAR NOT NULL, group_size INTEGER NOT NULL, ranks_seen INTEGER NOT NULL,
    bytes BIGINT NOT NULL, dtype VARCHAR NOT NULL, calls BIGINT NOT NULL, latency_sum_us BIGINT NOT NULL, latency_max_us BIGINT NOT NULL,
    skews BIGINT NOT NULL, skew_sum_us BIGINT NOT NULL, skew_max_us BIGINT NOT NULL, last_ranks JSON NOT NULL, bus_bandwidth DOUBLE NOT NULL
);

CREATE TABLE clocks (
    run INTEGER NOT NULL, pid INTEGER NOT NULL, rid INTEGER NOT NULL, offset_us BIGINT NOT NULL, matched BIGINT NOT NULL
);

-- What the ranks do over time. Schema 11 added this table.

CREATE TABLE activity (
    run INTEGER NOT NULL,
    packed VARCHAR NOT NULL -- all ranks, as Base64; see docs/sql.md
);
