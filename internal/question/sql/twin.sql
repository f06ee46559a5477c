SELECT event_id, path = $4 AS same_path
FROM normalexecs
WHERE run = $1 AND pid = $2 AND fn = $3
ORDER BY CASE WHEN path = $4 THEN 0 ELSE 1 END, CASE WHEN rid = $5 THEN 0 ELSE 1 END, abs(entry - $6::BIGINT), rid, ev_step, ev_row
LIMIT 1
