SELECT v.params::VARCHAR AS "value"
FROM final_models m
JOIN models v ON v.run = m.run AND v.pid = m.pid AND v.fn = m.fn AND v.model = m.model
WHERE m.run = $1 AND m.pid = $2 AND m.fn = $3
