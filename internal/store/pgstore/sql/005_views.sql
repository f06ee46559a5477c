-- Schema 5: what belongs to an execution can be asked for by the numbers of its id.

CREATE OR REPLACE VIEW messages AS -- of windows
SELECT e.run, e.pid, e.rid, e.tid,
       CASE WHEN e.ev_text = '' THEN e.rid::text || ':' || e.ev_step::text || ':' || e.ev_row::text ELSE e.ev_text END AS event_id,
       e.anomalous, s.n::integer AS "position", s.type, s.src, s.tar, s.bytes, s.tag, s."timestamp", s.execdata_key, e.ev_step, e.ev_row
FROM executions e
CROSS JOIN ROWS FROM (jsonb_to_recordset(e.detail -> 'event_window' -> 'comm_window') AS (
    bytes numeric(20, 0), execdata_key text COLLATE "C", src integer, tag integer, tar integer, "timestamp" bigint, type text COLLATE "C")
    ) WITH ORDINALITY AS s(bytes, execdata_key, src, tag, tar, "timestamp", type, n);

CREATE OR REPLACE VIEW counter_events AS
SELECT e.run, e.pid, e.rid, e.tid,
       CASE WHEN e.ev_text = '' THEN e.rid::text || ':' || e.ev_step::text || ':' || e.ev_row::text ELSE e.ev_text END AS event_id,
       e.anomalous, s.n::integer AS "position", s.counter_idx, s.counter_name, s.counter_value, s.ts, e.ev_step, e.ev_row
FROM executions e
CROSS JOIN ROWS FROM (jsonb_to_recordset(e.detail -> 'counter_events') AS (
    counter_idx bigint, counter_name text COLLATE "C", counter_value numeric(20, 0), ts bigint)
    ) WITH ORDINALITY AS s(counter_idx, counter_name, counter_value, ts, n);

CREATE OR REPLACE VIEW node_states AS
SELECT e.run, e.pid, e.rid, e.tid,
       CASE WHEN e.ev_text = '' THEN e.rid::text || ':' || e.ev_step::text || ':' || e.ev_row::text ELSE e.ev_text END AS event_id,
       e.anomalous, x."timestamp", s.field, s."value", e.ev_step, e.ev_row
FROM executions e
JOIN samples x ON x.run = e.run AND x.pid = e.pid AND x.sample = e.sample
CROSS JOIN jsonb_to_recordset(x.state) AS s(field text COLLATE "C", "value" numeric(20, 0));
