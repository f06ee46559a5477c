WITH members AS (
    SELECT a.event_id, a.entry
    FROM (
        SELECT rid, event_id, entry
        FROM all_executions
        WHERE run = $1 AND pid = $5 AND fn = $6 AND path = $7 AND anomalous
    ) a
    JOIN links l ON l.run = $1 AND l.issue = $2 AND l.pid = $5 AND l.rid = a.rid AND l.event_id = a.event_id
)
SELECT b.event_id AS previous, n.event_id AS next
FROM (SELECT 1 AS one) o
LEFT JOIN (
    SELECT event_id FROM members WHERE entry < $3::BIGINT OR entry = $3::BIGINT AND event_id < $4::VARCHAR ORDER BY entry DESC, event_id DESC LIMIT 1
) b ON TRUE
LEFT JOIN (
    SELECT event_id FROM members WHERE entry > $3::BIGINT OR entry = $3::BIGINT AND event_id > $4::VARCHAR ORDER BY entry, event_id LIMIT 1
) n ON TRUE
