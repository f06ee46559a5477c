SELECT pid, path, call_path
FROM call_paths
WHERE run = $1 AND pid || '/' || path IN (SELECT unnest(string_to_array($2::VARCHAR, ',')))
