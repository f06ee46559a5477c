SELECT params::VARCHAR AS "value"
FROM models
WHERE run = $1 AND pid = $2 AND fn = $3
ORDER BY model DESC
LIMIT 1
