SELECT packed AS value
FROM activity
WHERE run = $1
