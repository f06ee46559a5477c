SELECT coalesce(kind, '') AS kind, 0 AS line, lost_time, begun, ended FROM a
