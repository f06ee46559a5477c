SELECT run, pid, path, fn, call_path, calls
FROM path_stats
WHERE run = $1
