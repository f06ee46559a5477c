SELECT run, name, state, started, finished
FROM runs
ORDER BY started, run
