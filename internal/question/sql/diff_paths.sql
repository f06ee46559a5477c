SELECT a.pid AS program, f.name AS "function", coalesce(c.call_path, f.name) AS call_path, a.anomalies, a.lost_us
FROM (
    SELECT pid, fn, path, sum(anomalies)::BIGINT AS anomalies, sum(lost_us)::BIGINT AS lost_us
    FROM /*rollups*/
    WHERE run = $1 AND ($2::INTEGER IS NULL OR pid = $2::INTEGER)
    GROUP BY pid, fn, path
) a
JOIN functions f ON f.run = $1 AND f.pid = a.pid AND f.fn = a.fn
LEFT JOIN call_paths c ON c.run = $1 AND c.pid = a.pid AND c.path = a.path
ORDER BY a.pid, f.name, c.call_path
