SELECT min(begin_us) AS "value"
FROM efficiency
WHERE run = $1 AND begin_us > 0
