-- Schema 5: what belongs to an execution can be asked for by the numbers of its id, by which
-- the others are left out before their lists are read.

CREATE OR REPLACE VIEW messages AS -- of windows
SELECT run, pid, rid, tid, event_id, anomalous, "position", CASE WHEN s.received THEN 'RECV' ELSE 'SEND' END AS type,
       CASE WHEN s.received THEN s.partner ELSE rid END AS src, CASE WHEN s.received THEN rid ELSE s.partner END AS tar,
       s.bytes, s.tag, entry + s."at" AS "timestamp",
       rid || ':' || (ev_step + s.step) || ':' || (ev_row + s."row") AS execdata_key, ev_step, ev_row
FROM (SELECT e.run, e.pid, e.rid, e.tid, e.anomalous, e.ev_step, e.ev_row, e.entry,
             coalesce(e.ev_text, e.rid || ':' || e.ev_step || ':' || e.ev_row) AS event_id,
             unnest(e.comm_window) AS s, generate_subscripts(e.comm_window, 1)::INTEGER AS "position"
      FROM executions e);

CREATE OR REPLACE VIEW counter_events AS
SELECT run, pid, rid, tid, event_id, anomalous, "position", s.idx AS counter_idx, s.name AS counter_name,
       s."value" AS counter_value, entry + s."at" AS ts, ev_step, ev_row
FROM (SELECT e.run, e.pid, e.rid, e.tid, e.anomalous, e.ev_step, e.ev_row, e.entry,
             coalesce(e.ev_text, e.rid || ':' || e.ev_step || ':' || e.ev_row) AS event_id,
             unnest(e.counter_events) AS s, generate_subscripts(e.counter_events, 1)::INTEGER AS "position"
      FROM executions e);

CREATE OR REPLACE VIEW node_states AS
SELECT run, pid, rid, tid, event_id, anomalous, "timestamp", s.field, s."value", ev_step, ev_row
FROM (SELECT e.run, e.pid, e.rid, e.tid, e.anomalous, e.ev_step, e.ev_row, n."timestamp",
             coalesce(e.ev_text, e.rid || ':' || e.ev_step || ':' || e.ev_row) AS event_id, unnest(n.state) AS s
      FROM executions e JOIN samples n ON n.run = e.run AND n.pid = e.pid AND n.sample = e.sample);
