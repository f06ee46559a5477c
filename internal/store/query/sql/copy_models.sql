SELECT v.run, v.pid, v.fn, v.model, v.params
FROM final_models m
JOIN models v ON v.run = m.run AND v.pid = m.pid AND v.fn = m.fn AND v.model = m.model
WHERE m.run = $1
