SELECT pid, path, call_path
FROM call_paths
WHERE run = $1
