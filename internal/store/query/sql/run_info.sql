SELECT info::VARCHAR AS info
FROM runs
WHERE run = $1
