SELECT pid, path, fns
FROM paths
WHERE run = $1 AND ($2::INTEGER IS NULL OR pid = $2::INTEGER)
