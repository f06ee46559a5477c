WITH by_rank AS (
    SELECT pid, fn, rid, min(nullif(hostname, 'Unknown')) AS hostname, sum(anomalies::DOUBLE PRECISION) AS anomalies,
           sum(lost_us::DOUBLE PRECISION) AS lost_us, sum(anomalous_us::DOUBLE PRECISION) AS anomalous_us,
           sum(severity) AS severity, max(score) AS score, min(first_us) AS first_us, max(last_us) AS last_us
    FROM /*rollups*/
    WHERE run = $1 AND ($3::INTEGER IS NULL OR pid = $3::INTEGER) AND ($5::BOOLEAN OR kind <> 'comm-wait')
    GROUP BY pid, fn, rid
), by_function AS (
    SELECT pid, fn, sum(anomalies)::BIGINT AS anomalies, sum(lost_us)::BIGINT AS lost_us, sum(anomalous_us)::BIGINT AS anomalous_us,
           sum(severity)::DOUBLE PRECISION AS severity, max(score) AS score, count(*) AS ranks,
           count(DISTINCT hostname) AS hosts, min(first_us) AS first_us, max(last_us) AS last_us
    FROM by_rank
    GROUP BY pid, fn
)
SELECT a.lost_us, a.anomalies, a.severity, a.score, p.exclusive_count::BIGINT AS calls,
       100 * a.anomalies / nullif(p.exclusive_count, 0) AS anomalous_calls_percent,
       100 * a.anomalous_us / nullif(p.exclusive_accumulate, 0) AS anomalous_time_percent,
       a.ranks, a.hosts, (a.first_us - $2::BIGINT) / 1e6::DOUBLE PRECISION AS first_s, (a.last_us - $2::BIGINT) / 1e6::DOUBLE PRECISION AS last_s,
       a.pid AS program, f.name AS "function"
FROM by_function a
JOIN functions f ON f.run = $1 AND f.pid = a.pid AND f.fn = a.fn
LEFT JOIN profiles p ON p.run = $1 AND p.pid = a.pid AND p.fn = a.fn
ORDER BY /*order*/ DESC, lost_us DESC, a.pid, f.name, a.fn
LIMIT $4
