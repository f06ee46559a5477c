SELECT coalesce(nullif(e.ev_text, ''), e.rid || ':' || e.ev_step || ':' || e.ev_row) AS event_id, e.path = $4 AS same_path
FROM (
    SELECT rid, ev_step, ev_row, ev_text, path
    FROM executions
    WHERE run = $1 AND pid = $2 AND fn = $3 AND NOT anomalous
    ORDER BY CASE WHEN path = $4 THEN 0 ELSE 1 END, CASE WHEN rid = $5 THEN 0 ELSE 1 END, abs(entry - $6::BIGINT), rid, ev_step, ev_row
    LIMIT 1
) e
