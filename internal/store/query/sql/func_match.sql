SELECT pid, fn, fid, name
FROM functions
WHERE run = $1 AND ($2::INTEGER IS NULL OR pid = $2::INTEGER)
  AND (name = $3 OR name LIKE $4 ESCAPE '\')
ORDER BY CASE WHEN name = $3 THEN 0 ELSE 1 END, pid, name, fid
LIMIT 50
