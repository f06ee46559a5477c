SELECT packed
FROM activity
WHERE run = $1
