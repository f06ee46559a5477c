SELECT f.pid AS program, f.name AS "function", p.exclusive_count::BIGINT AS calls, p.exclusive_accumulate AS exclusive_us, v.params::VARCHAR AS model
FROM functions f
JOIN profiles p ON p.run = f.run AND p.pid = f.pid AND p.fn = f.fn
LEFT JOIN final_models m ON m.run = f.run AND m.pid = f.pid AND m.fn = f.fn
LEFT JOIN models v ON v.run = m.run AND v.pid = m.pid AND v.fn = m.fn AND v.model = m.model
WHERE f.run = $1
ORDER BY f.pid, f.fid
