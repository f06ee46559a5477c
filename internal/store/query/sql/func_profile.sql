SELECT f.pid AS program, f.fid, f.name AS "function",
       p.exclusive_count::BIGINT AS calls, p.exclusive_accumulate AS exclusive_us, p.exclusive_mean AS exclusive_mean_us,
       p.exclusive_stddev AS exclusive_stddev_us, p.exclusive_minimum AS exclusive_min_us, p.exclusive_maximum AS exclusive_max_us,
       p.inclusive_accumulate AS inclusive_us, p.inclusive_mean AS inclusive_mean_us,
       a.anomalies, a.withdrawn, a.normal, a.lost_us, a.severity, a.score,
       100 * a.lost_us / nullif(p.exclusive_accumulate, 0) AS lost_percent,
       a.ranks, (a.first_us - $2::BIGINT) / 1e6::DOUBLE PRECISION AS first_s, (a.last_us - $2::BIGINT) / 1e6::DOUBLE PRECISION AS last_s
FROM functions f
LEFT JOIN profiles p ON p.run = f.run AND p.pid = f.pid AND p.fn = f.fn
CROSS JOIN (
    SELECT coalesce(sum(CASE WHEN flagged THEN 1 ELSE 0 END), 0)::BIGINT AS anomalies,
           coalesce(sum(CASE WHEN anomalous AND NOT flagged THEN 1 ELSE 0 END), 0)::BIGINT AS withdrawn,
           coalesce(sum(CASE WHEN anomalous THEN 0 ELSE 1 END), 0)::BIGINT AS normal,
           coalesce(sum(CASE WHEN flagged THEN lost_time END), 0)::BIGINT AS lost_us,
           coalesce(sum(CASE WHEN flagged THEN outlier_severity END), 0)::DOUBLE PRECISION AS severity,
           max(CASE WHEN flagged THEN outlier_score END) AS score, count(DISTINCT CASE WHEN flagged THEN rid END) AS ranks,
           min(CASE WHEN flagged THEN entry END) AS first_us, max(CASE WHEN flagged THEN "exit" END) AS last_us
    FROM (
        SELECT *, anomalous AND status IS DISTINCT FROM 'withdrawn' AS flagged
        FROM executions
        WHERE run = $1 AND pid = $3 AND fn = $4
    ) e
) a
WHERE f.run = $1 AND f.pid = $3 AND f.fn = $4
