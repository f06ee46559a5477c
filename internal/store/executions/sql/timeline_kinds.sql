SELECT coalesce(kind, '') AS kind, 0 AS line, lost_time, entry, "exit", first_column FROM a
