SELECT pid, rid, event_id, "timestamp", field, "value"::DOUBLE PRECISION AS "value"
FROM node_states
WHERE run = $1 AND /*events*/
