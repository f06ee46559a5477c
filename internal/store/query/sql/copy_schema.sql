-- The tables and views of a run in memory: the columns that queries over many executions
-- read. The database is DuckDB, whatever the store is.
CREATE TABLE executions (
    run INTEGER, pid INTEGER, rid INTEGER, tid BIGINT, ev_step INTEGER, ev_row BIGINT, ev_text VARCHAR, event_id VARCHAR,
    anomalous BOOLEAN, fn INTEGER, path INTEGER, hostname VARCHAR, entry BIGINT, "exit" BIGINT,
    runtime_exclusive BIGINT, runtime_total BIGINT, lost_time BIGINT, io_step INTEGER, outlier_score DOUBLE, outlier_severity DOUBLE,
    status VARCHAR, is_gpu_event BOOLEAN, kind VARCHAR
);
CREATE TABLE functions (run INTEGER, pid INTEGER, fn INTEGER, fid BIGINT, name VARCHAR);
CREATE TABLE paths (run INTEGER, pid INTEGER, path INTEGER, fns JSON);
CREATE TABLE call_paths (run INTEGER, pid INTEGER, path INTEGER, call_path VARCHAR);
CREATE TABLE path_stats (run INTEGER, pid INTEGER, path INTEGER, fn INTEGER, call_path VARCHAR, calls BIGINT);
CREATE TABLE links (
    run INTEGER, pid INTEGER, rid INTEGER, event_id VARCHAR, issue INTEGER, "role" VARCHAR, culprit_pid INTEGER, culprit_event_id VARCHAR
);
CREATE TABLE metadata (run INTEGER, pid INTEGER, rid INTEGER, tid BIGINT, descr VARCHAR, "value" VARCHAR);
CREATE TABLE profiles (
    run INTEGER, pid INTEGER, fn INTEGER, exclusive_count DOUBLE, exclusive_accumulate DOUBLE, exclusive_mean DOUBLE, exclusive_maximum DOUBLE,
    inclusive_accumulate DOUBLE, inclusive_mean DOUBLE
);
CREATE TABLE final_models (run INTEGER, pid INTEGER, fn INTEGER, model INTEGER);
CREATE TABLE models (run INTEGER, pid INTEGER, fn INTEGER, model INTEGER, params JSON);

CREATE VIEW all_executions AS
SELECT e.*, f.fid, f.name AS func FROM executions e JOIN functions f ON f.run = e.run AND f.pid = e.pid AND f.fn = e.fn;
CREATE VIEW anomalies AS SELECT * FROM all_executions WHERE anomalous;
CREATE VIEW normalexecs AS SELECT * FROM all_executions WHERE NOT anomalous;
