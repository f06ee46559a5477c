SELECT a.pid AS program, a.rid AS "rank", f.name AS "function", p.fns, a.anomalies, a.lost_us
FROM (
    SELECT pid, fn, path, rid, sum(anomalies)::BIGINT AS anomalies, sum(lost_us)::BIGINT AS lost_us
    FROM /*rollups*/
    WHERE run = $1
    GROUP BY pid, fn, path, rid
) a
JOIN functions f ON f.run = $1 AND f.pid = a.pid AND f.fn = a.fn
LEFT JOIN paths p ON p.run = $1 AND p.pid = a.pid AND p.path = a.path
ORDER BY a.pid, f.fid, a.path, a.rid
