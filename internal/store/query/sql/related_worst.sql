-- Of many anomalies, given as rank:step:row, those that lost most.
SELECT a.pid, a.rid, a.event_id, a.hostname, a.func, a.entry, a.lost_time
FROM anomalies a
JOIN (
    SELECT split_part(x, ':', 1)::INTEGER AS rid, split_part(x, ':', 2)::INTEGER AS ev_step, split_part(x, ':', 3)::BIGINT AS ev_row
    FROM (SELECT unnest(string_to_array($3::VARCHAR, ',')) AS x) t
) n ON n.rid = a.rid AND n.ev_step = a.ev_step AND n.ev_row = a.ev_row
WHERE a.run = $1 AND a.pid = $2
ORDER BY a.lost_time DESC, a.rid, a.ev_step, a.ev_row
LIMIT $4
