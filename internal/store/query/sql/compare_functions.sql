SELECT f.pid AS program, f.name AS "function", g.fn IS NOT NULL AS on_gpu, p.exclusive_count::BIGINT AS calls, p.exclusive_accumulate AS exclusive_us,
       v.params::VARCHAR AS model, 0 AS anomalies, 0 AS lost_us
FROM functions f
JOIN profiles p ON p.run = f.run AND p.pid = f.pid AND p.fn = f.fn
LEFT JOIN (SELECT DISTINCT pid, fn FROM executions WHERE run = $1 AND is_gpu_event) g ON g.pid = f.pid AND g.fn = f.fn
LEFT JOIN final_models m ON m.run = f.run AND m.pid = f.pid AND m.fn = f.fn
LEFT JOIN models v ON v.run = m.run AND v.pid = m.pid AND v.fn = m.fn AND v.model = m.model
WHERE f.run = $1
ORDER BY f.pid, p.exclusive_count DESC, f.fid
