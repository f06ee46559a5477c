SELECT f.pid || ':' || f.fn AS id, f.pid AS program, f.fid, f.name AS "function", p.exclusive_count::BIGINT AS calls,
       p.exclusive_accumulate AS exclusive_us, p.exclusive_mean AS exclusive_mean_us, p.inclusive_accumulate AS inclusive_us,
       coalesce(a.anomalies, 0)::BIGINT AS anomalies, coalesce(a.lost_us, 0)::BIGINT AS lost_us
FROM functions f
LEFT JOIN profiles p ON p.run = f.run AND p.pid = f.pid AND p.fn = f.fn
LEFT JOIN (
    SELECT pid, fn, count(*) AS anomalies, sum(lost_time) AS lost_us
    FROM executions
    WHERE run = $1 AND anomalous AND status IS DISTINCT FROM 'withdrawn'
    GROUP BY pid, fn
) a ON a.pid = f.pid AND a.fn = f.fn
WHERE f.run = $1 AND ($2::INTEGER IS NULL OR f.pid = $2::INTEGER)
  AND ($3::VARCHAR IS NULL OR f.name LIKE $3::VARCHAR ESCAPE '\')
ORDER BY /*order*/ f.pid, f.name, f.fn
LIMIT $4 OFFSET $5
