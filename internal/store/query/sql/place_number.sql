SELECT fn, path
FROM executions
WHERE run = $1 AND pid = $2 AND rid = $3 AND ev_step = $4 AND ev_row = $5
