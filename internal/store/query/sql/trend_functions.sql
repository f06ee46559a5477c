SELECT f.run, f.pid AS program, f.name AS "function", p.exclusive_count::BIGINT AS calls, p.exclusive_accumulate AS exclusive_us, a.anomalies, a.lost_us,
       FALSE AS on_gpu, NULL AS model
FROM functions f
LEFT JOIN profiles p ON p.run = f.run AND p.pid = f.pid AND p.fn = f.fn
LEFT JOIN (
    SELECT run, pid, fn, sum(anomalies)::BIGINT AS anomalies, sum(lost_us)::BIGINT AS lost_us
    FROM /*rollups*/
    WHERE run IN (/*runs*/)
    GROUP BY run, pid, fn
) a ON a.run = f.run AND a.pid = f.pid AND a.fn = f.fn
WHERE f.run IN (/*runs*/) AND (p.fn IS NOT NULL OR a.fn IS NOT NULL)
ORDER BY f.run, f.pid, f.fid
