SELECT split_part(x, ':', 1)::INTEGER AS pid, split_part(x, ':', 2)::INTEGER AS fn, split_part(x, ':', 3)::BIGINT AS anomalies,
           split_part(x, ':', 4)::BIGINT AS lost_us, split_part(x, ':', 5)::BIGINT AS anomalous_us, split_part(x, ':', 6)::BOOLEAN AS on_gpu
    FROM (SELECT unnest(string_to_array($7::VARCHAR, ',')) AS x) t
    WHERE x <> ''
