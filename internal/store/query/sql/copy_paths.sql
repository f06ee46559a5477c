SELECT run, pid, path, fns
FROM paths
WHERE run = $1
