SELECT pid, min("value") AS executable
FROM metadata
WHERE run = $1 AND descr = 'Executable'
GROUP BY pid
ORDER BY pid
