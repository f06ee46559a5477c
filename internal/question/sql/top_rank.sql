WITH by_function AS (
    SELECT pid, rid, fn, min(hostname) AS hostname, sum(anomalies::DOUBLE PRECISION) AS anomalies,
           sum(lost_us::DOUBLE PRECISION) AS lost_us, sum(severity) AS severity,
           max(score) AS score, min(first_us) AS first_us, max(last_us) AS last_us
    FROM /*rollups*/
    WHERE run = $1 AND ($3::INTEGER IS NULL OR pid = $3::INTEGER)
    GROUP BY pid, rid, fn
), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY pid, rid ORDER BY lost_us DESC, fn) AS place FROM by_function
), by_rank AS (
    SELECT pid, rid, min(hostname) AS hostname, sum(anomalies)::BIGINT AS anomalies, sum(lost_us)::BIGINT AS lost_us,
           sum(severity)::DOUBLE PRECISION AS severity, max(score) AS score, count(*) AS functions,
           min(first_us) AS first_us, max(last_us) AS last_us, max(CASE WHEN place = 1 THEN fn END) AS fn
    FROM ranked
    GROUP BY pid, rid
)
SELECT a.lost_us, a.anomalies, a.severity, a.score, a.functions,
       (a.first_us - $2::BIGINT) / 1e6::DOUBLE PRECISION AS first_s, (a.last_us - $2::BIGINT) / 1e6::DOUBLE PRECISION AS last_s,
       a.pid AS program, a.rid AS "rank", a.hostname AS host, f.name AS worst_function
FROM by_rank a
JOIN functions f ON f.run = $1 AND f.pid = a.pid AND f.fn = a.fn
ORDER BY /*order*/ DESC, lost_us DESC, a.pid, a.rid
LIMIT $4
