SELECT pid, path, parent, func, calls, exclusive_us
FROM path_stats
WHERE run = $1 AND ($2::INTEGER IS NULL OR pid = $2::INTEGER)
ORDER BY pid, depth, path
