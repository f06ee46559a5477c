SELECT run, pid, fn, fid, name
FROM functions
WHERE run = $1
