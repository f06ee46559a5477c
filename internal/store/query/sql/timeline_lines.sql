SELECT l.line AS k, f.lost, f.begun, f.ended
    FROM found f
    JOIN (
        SELECT split_part(x, ':', 1)::INTEGER AS pid, split_part(x, ':', 2)::INTEGER AS rid, split_part(x, ':', 3)::INTEGER AS line
        FROM (SELECT unnest(string_to_array(/*lines*/::VARCHAR, ',')) AS x) t
    ) l ON l.pid = f.pid AND l.rid = f.rid
