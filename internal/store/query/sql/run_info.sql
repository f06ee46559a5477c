SELECT info::VARCHAR AS "value"
FROM runs
WHERE run = $1
