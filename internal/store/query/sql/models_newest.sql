SELECT m.pid, f.name, m.params::VARCHAR AS model
FROM models m
JOIN (SELECT pid, fn, max(model) AS model FROM models WHERE run = $1 GROUP BY pid, fn) n ON n.pid = m.pid AND n.fn = m.fn AND n.model = m.model
JOIN functions f ON f.run = m.run AND f.pid = m.pid AND f.fn = m.fn
WHERE m.run = $1
