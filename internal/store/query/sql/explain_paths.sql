SELECT pid, path, fn, call_path, calls
FROM path_stats
WHERE run = $1 AND calls > 0 AND pid || '/' || fn IN (SELECT unnest(string_to_array($2::VARCHAR, ',')))
ORDER BY pid, path
