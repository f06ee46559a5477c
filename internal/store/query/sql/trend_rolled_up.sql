SELECT DISTINCT run
FROM rollups
WHERE run IN (/*runs*/)
