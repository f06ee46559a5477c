WITH by_rank AS (
    SELECT pid, rid, min(nullif(hostname, 'Unknown')) AS hostname, sum(anomalies::DOUBLE PRECISION) AS anomalies,
           sum(lost_us::DOUBLE PRECISION) AS lost_us, sum(severity) AS severity,
           max(score) AS score, min(first_us) AS first_us, max(last_us) AS last_us
    FROM /*rollups*/
    WHERE run = $1 AND ($3::INTEGER IS NULL OR pid = $3::INTEGER) AND ($5::BOOLEAN OR kind <> 'comm-wait')
    GROUP BY pid, rid
)
SELECT sum(a.lost_us)::BIGINT AS lost_us, sum(a.anomalies)::BIGINT AS anomalies, sum(a.severity)::DOUBLE PRECISION AS severity,
       max(a.score) AS score, count(*) AS ranks, (min(a.first_us) - $2::BIGINT) / 1e6::DOUBLE PRECISION AS first_s,
       (max(a.last_us) - $2::BIGINT) / 1e6::DOUBLE PRECISION AS last_s, a.hostname AS host
FROM by_rank a
GROUP BY a.hostname
ORDER BY /*order*/ DESC, lost_us DESC, a.hostname
LIMIT $4
