SELECT pid, fn, fid, name
FROM functions
WHERE run = $1 AND lower(name) LIKE $2 ESCAPE '\'
ORDER BY CASE WHEN lower(name) LIKE $3 ESCAPE '\' THEN 0 ELSE 1 END, length(name), name, pid, fn
LIMIT $4
