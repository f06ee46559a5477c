WITH found AS (
    SELECT entry, lost_time, rid
    FROM executions
    WHERE run = $1 AND pid = $3 AND fn = $4 AND anomalous AND status IS DISTINCT FROM 'withdrawn'
), span AS (
    SELECT greatest(($6::BIGINT - $2::BIGINT) / $5::DOUBLE PRECISION, 1) AS width
), numbered AS (
    SELECT least(greatest(floor((entry - $2::BIGINT) / width), 0), $5::BIGINT - 1)::BIGINT AS part, lost_time, rid
    FROM found CROSS JOIN span
)
SELECT p.part, (p.part * max(s.width)) / 1e6::DOUBLE PRECISION AS from_s,
       count(n.rid) AS anomalies, coalesce(sum(n.lost_time), 0)::BIGINT AS lost_us, count(DISTINCT n.rid) AS ranks
FROM generate_series(0::BIGINT, $5::BIGINT - 1) AS p(part) CROSS JOIN span s LEFT JOIN numbered n ON n.part = p.part
GROUP BY p.part
ORDER BY p.part
