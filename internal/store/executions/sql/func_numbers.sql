SELECT pid, fn
FROM functions
WHERE run = $1 AND name LIKE $2 ESCAPE '\'
ORDER BY pid, fn
LIMIT $3
