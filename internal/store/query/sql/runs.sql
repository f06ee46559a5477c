SELECT run, name, state, started, finished, info::VARCHAR AS info
FROM runs
ORDER BY started, run
