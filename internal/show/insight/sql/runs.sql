SELECT run, name, state, started, finished,
       (SELECT count(*) FROM executions e WHERE e.run = r.run AND anomalous AND status IS DISTINCT FROM 'withdrawn') AS anomalies
FROM runs r
WHERE $1::VARCHAR IS NULL OR name = $1::VARCHAR
ORDER BY started, run
