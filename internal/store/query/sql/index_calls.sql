SELECT pid, path, fn, calls
FROM path_profiles
WHERE run = $1 AND calls > 0
