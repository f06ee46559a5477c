SELECT min(entry) AS "value"
FROM frames
WHERE run = $1 AND (NOT $2::BOOLEAN OR rid = (SELECT min(rid) FROM executions WHERE run = $1))
