SELECT '' AS kind, n.line, a.lost_time, a.entry, a."exit", a.first_column
            FROM a
            JOIN (
                SELECT split_part(x, ':', 1)::INTEGER AS pid, split_part(x, ':', 2)::INTEGER AS rid, split_part(x, ':', 3)::INTEGER AS line
                FROM (SELECT unnest(string_to_array(?::VARCHAR, ',')) AS x) t
            ) n ON n.pid = a.pid AND n.rid = a.rid
