SELECT pid, rid, fn, coalesce(kind, '') AS kind, entry, greatest("exit", entry + 1) AS ended, lost_time
FROM executions
WHERE run = $1 AND anomalous AND status IS DISTINCT FROM 'withdrawn'
ORDER BY entry
LIMIT $2
