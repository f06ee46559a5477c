WITH by_rank AS (
    SELECT pid, path, fn, rid, sum(anomalies::DOUBLE PRECISION) AS anomalies, sum(lost_us::DOUBLE PRECISION) AS lost_us,
           sum(severity) AS severity, max(score) AS score, min(first_us) AS first_us, max(last_us) AS last_us
    FROM /*rollups*/
    WHERE run = $1 AND ($3::INTEGER IS NULL OR pid = $3::INTEGER) AND ($5::BOOLEAN OR kind <> 'comm-wait')
    GROUP BY pid, path, fn, rid
), by_path AS (
    SELECT pid, path, fn, sum(anomalies)::BIGINT AS anomalies, sum(lost_us)::BIGINT AS lost_us, sum(severity)::DOUBLE PRECISION AS severity,
           max(score) AS score, count(*) AS ranks, min(first_us) AS first_us, max(last_us) AS last_us
    FROM by_rank
    GROUP BY pid, path, fn
)
SELECT a.lost_us, a.anomalies, a.severity, a.score, a.ranks,
       (a.first_us - $2::BIGINT) / 1e6::DOUBLE PRECISION AS first_s, (a.last_us - $2::BIGINT) / 1e6::DOUBLE PRECISION AS last_s,
       a.pid AS program, f.name AS "function", c.call_path
FROM by_path a
JOIN functions f ON f.run = $1 AND f.pid = a.pid AND f.fn = a.fn
LEFT JOIN call_paths c ON c.run = $1 AND c.pid = a.pid AND c.path = a.path
ORDER BY /*order*/ DESC, lost_us DESC, a.pid, c.call_path, f.name, a.path, a.fn
LIMIT $4
