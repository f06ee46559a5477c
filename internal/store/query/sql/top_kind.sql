WITH by_function AS (
    SELECT kind, pid, fn, sum(anomalies::DOUBLE PRECISION) AS anomalies, sum(lost_us::DOUBLE PRECISION) AS lost_us,
           sum(severity) AS severity, max(score) AS score, min(first_us) AS first_us, max(last_us) AS last_us
    FROM /*rollups*/
    WHERE run = $1 AND ($3::INTEGER IS NULL OR pid = $3::INTEGER) AND $5::BOOLEAN
    GROUP BY kind, pid, fn
), worst AS (
    SELECT DISTINCT ON (kind) kind, pid, fn FROM by_function ORDER BY kind, lost_us DESC, anomalies DESC, pid, fn
), by_kind AS (
    SELECT kind, sum(anomalies)::BIGINT AS anomalies, sum(lost_us)::BIGINT AS lost_us, sum(severity)::DOUBLE PRECISION AS severity,
           max(score) AS score, count(*) AS functions, min(first_us) AS first_us, max(last_us) AS last_us
    FROM by_function
    GROUP BY kind
), ranks AS (
    SELECT kind, count(*) AS ranks
    FROM (
        SELECT DISTINCT kind, pid, rid
        FROM /*rollups*/
        WHERE run = $1 AND ($3::INTEGER IS NULL OR pid = $3::INTEGER)
    ) r
    GROUP BY kind
)
SELECT a.lost_us, a.anomalies, a.severity, a.score, a.functions, r.ranks,
       (a.first_us - $2::BIGINT) / 1e6::DOUBLE PRECISION AS first_s, (a.last_us - $2::BIGINT) / 1e6::DOUBLE PRECISION AS last_s,
       nullif(a.kind, '') AS kind, f.name AS worst_function
FROM by_kind a
JOIN ranks r ON r.kind = a.kind
JOIN worst w ON w.kind = a.kind
JOIN functions f ON f.run = $1 AND f.pid = w.pid AND f.fn = w.fn
ORDER BY /*order*/ DESC, lost_us DESC, a.kind
LIMIT $4
