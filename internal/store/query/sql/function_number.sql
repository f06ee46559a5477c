SELECT pid, fn, fid, name
FROM functions
WHERE run = $1 AND pid = $2 AND fn = $3
