SELECT run, name, state, started, finished, NULL::VARCHAR AS info
FROM runs
ORDER BY started, run
