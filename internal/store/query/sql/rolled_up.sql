SELECT count(*) > 0 AS "value"
FROM (SELECT run FROM rollups WHERE run = $1 LIMIT 1) r
