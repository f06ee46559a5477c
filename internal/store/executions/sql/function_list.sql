SELECT pid, fn, fid, name
FROM functions
WHERE run = $1
ORDER BY pid, fn
