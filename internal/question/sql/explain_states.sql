SELECT pid, rid, event_id, "timestamp", field, "value"::DOUBLE PRECISION AS "value"
FROM node_states
WHERE run = $1 AND pid || '/' || event_id IN (SELECT unnest(string_to_array($2::VARCHAR, ',')))
