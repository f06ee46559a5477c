SELECT pid, event_id, counter_name, counter_value::DOUBLE PRECISION AS counter_value, ts
FROM counter_events
WHERE run = $1 AND counter_name <> 'Correlation ID' AND /*events*/
ORDER BY pid, event_id, "position"
