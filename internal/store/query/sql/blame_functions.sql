SELECT DISTINCT name
FROM functions
WHERE run = $1
ORDER BY name
