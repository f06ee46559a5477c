WITH by_function AS (
    SELECT pid, rid, fn, min(nullif(hostname, 'Unknown')) AS hostname, sum(anomalies::DOUBLE PRECISION) AS anomalies,
           sum(lost_us::DOUBLE PRECISION) AS lost_us, sum(severity) AS severity,
           max(score) AS score, min(first_us) AS first_us, max(last_us) AS last_us
    FROM /*rollups*/
    WHERE run = $1 AND ($3::INTEGER IS NULL OR pid = $3::INTEGER) AND ($5::BOOLEAN OR kind <> 'comm-wait')
    GROUP BY pid, rid, fn
), worst AS (
    SELECT DISTINCT ON (pid, rid) pid, rid, fn FROM by_function ORDER BY pid, rid, lost_us DESC, fn
), by_rank AS (
    SELECT pid, rid, min(hostname) AS hostname, sum(anomalies)::BIGINT AS anomalies, sum(lost_us)::BIGINT AS lost_us,
           sum(severity)::DOUBLE PRECISION AS severity, max(score) AS score, count(*) AS functions,
           min(first_us) AS first_us, max(last_us) AS last_us
    FROM by_function
    GROUP BY pid, rid
)
SELECT a.lost_us, a.anomalies, a.severity, a.score, a.functions,
       (a.first_us - $2::BIGINT) / 1e6::DOUBLE PRECISION AS first_s, (a.last_us - $2::BIGINT) / 1e6::DOUBLE PRECISION AS last_s,
       a.pid AS program, a.rid AS "rank", a.hostname AS host, f.name AS worst_function
FROM by_rank a
JOIN worst w ON w.pid = a.pid AND w.rid = a.rid
JOIN functions f ON f.run = $1 AND f.pid = a.pid AND f.fn = w.fn
ORDER BY /*order*/ DESC, lost_us DESC, a.pid, a.rid
LIMIT $4
