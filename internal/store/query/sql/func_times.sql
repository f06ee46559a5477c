WITH found AS (
    SELECT entry, lost_time, rid
    FROM executions
    WHERE run = $1 AND pid = $3 AND fn = $4 AND anomalous AND status IS DISTINCT FROM 'withdrawn'
), span AS (
    SELECT $2::BIGINT AS first_us, greatest((max(entry) - $2::BIGINT + $5::BIGINT) / $5::DOUBLE PRECISION, 1) AS width FROM found
)
SELECT floor((entry - first_us) / width)::BIGINT AS part,
       (floor((entry - first_us) / width) * width) / 1e6::DOUBLE PRECISION AS from_s,
       count(*) AS anomalies, sum(lost_time)::BIGINT AS lost_us, count(DISTINCT rid) AS ranks
FROM found CROSS JOIN span
GROUP BY 1, 2
ORDER BY 1
