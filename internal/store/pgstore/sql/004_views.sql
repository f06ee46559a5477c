CREATE VIEW path_stats AS
SELECT s.run, s.pid, s.path, s.parent, p.depth, s.fn, f.fid, f.name AS func, s.calls, s.exclusive_us, p.call_path
FROM path_profiles s
LEFT JOIN call_paths p ON p.run = s.run AND p.pid = s.pid AND p.path = s.path
LEFT JOIN functions f ON f.run = s.run AND f.pid = s.pid AND f.fn = s.fn;
