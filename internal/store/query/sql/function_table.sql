-- The total is not counted with a window function: in DuckDB 1.5 window functions sometimes fail on a
-- busy machine, after which the database rejects all statements.
SELECT concat(f.pid, ':', f.fn) AS id, f.pid AS program, f.fid, f.name AS "function", CASE WHEN a.on_gpu THEN 'gpu' ELSE '' END AS "group",
       p.exclusive_count::BIGINT AS calls, p.exclusive_accumulate AS exclusive_us, p.exclusive_mean AS exclusive_mean_us,
       p.exclusive_maximum AS exclusive_max_us, p.inclusive_accumulate AS inclusive_us, p.inclusive_mean AS inclusive_mean_us,
       coalesce(a.anomalies, 0)::BIGINT AS anomalies, coalesce(a.lost_us, 0)::BIGINT AS lost_us,
       100 * coalesce(a.anomalies, 0)::DOUBLE PRECISION / nullif(p.exclusive_count, 0) AS anomalous_calls_percent,
       100 * coalesce(a.anomalous_us, 0)::DOUBLE PRECISION / nullif(p.exclusive_accumulate, 0) AS anomalous_time_percent,
       (v.params -> 'normal')::VARCHAR AS normal, NULL AS modes, t.total
FROM functions f
LEFT JOIN profiles p ON p.run = f.run AND p.pid = f.pid AND p.fn = f.fn
LEFT JOIN (
    SELECT split_part(x, ':', 1)::INTEGER AS pid, split_part(x, ':', 2)::INTEGER AS fn, split_part(x, ':', 3)::BIGINT AS anomalies,
           split_part(x, ':', 4)::BIGINT AS lost_us, split_part(x, ':', 5)::BIGINT AS anomalous_us, split_part(x, ':', 6)::BOOLEAN AS on_gpu
    FROM (SELECT unnest(string_to_array($7::VARCHAR, ',')) AS x) t
    WHERE x <> ''
) a ON a.pid = f.pid AND a.fn = f.fn
CROSS JOIN (
    SELECT count(*) AS total
    FROM functions
    WHERE run = $1 AND ($2::INTEGER IS NULL OR pid = $2::INTEGER) AND ($3::VARCHAR IS NULL OR name LIKE $3::VARCHAR ESCAPE '\')
      AND ($4::INTEGER IS NULL OR fn = $4::INTEGER)
) t
LEFT JOIN final_models m ON m.run = f.run AND m.pid = f.pid AND m.fn = f.fn
LEFT JOIN models v ON v.run = m.run AND v.pid = m.pid AND v.fn = m.fn AND v.model = m.model
WHERE f.run = $1 AND ($2::INTEGER IS NULL OR f.pid = $2::INTEGER) AND ($3::VARCHAR IS NULL OR f.name LIKE $3::VARCHAR ESCAPE '\')
  AND ($4::INTEGER IS NULL OR f.fn = $4::INTEGER)
ORDER BY /*order*/ f.pid, f.name, f.fn
LIMIT $5 OFFSET $6
