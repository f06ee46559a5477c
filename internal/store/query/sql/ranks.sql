SELECT pid, rid, max(host) AS host
FROM (
    SELECT pid, rid, max(CASE WHEN descr = 'Hostname' THEN "value" ELSE '' END) AS host FROM metadata WHERE run = $1 GROUP BY pid, rid
    UNION ALL
    SELECT pid, rid, max(CASE WHEN hostname = 'Unknown' THEN '' ELSE hostname END) FROM executions WHERE run = $1 GROUP BY pid, rid
) r
GROUP BY pid, rid
ORDER BY pid, rid
LIMIT $2
