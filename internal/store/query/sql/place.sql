SELECT fn, path
FROM all_executions
WHERE run = $1 AND pid = $2 AND rid = $3 AND event_id = $4
