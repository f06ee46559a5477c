-- The anomalies of a function and call path that were entered next to a time, the nearest
-- first, some before and some after. Those that are of the issue are still to be told.
SELECT event_id, rid, entry, later
FROM (
    SELECT * FROM (
        SELECT rid, event_id, entry, FALSE AS later
        FROM all_executions
        WHERE run = $1 AND pid = $2 AND fn = $3 AND path = $4 AND anomalous AND (entry < $5::BIGINT OR entry = $5::BIGINT AND event_id < $6::VARCHAR)
        ORDER BY entry DESC, event_id DESC
        LIMIT $7
    ) b
    UNION ALL
    SELECT * FROM (
        SELECT rid, event_id, entry, TRUE AS later
        FROM all_executions
        WHERE run = $1 AND pid = $2 AND fn = $3 AND path = $4 AND anomalous AND (entry > $5::BIGINT OR entry = $5::BIGINT AND event_id > $6::VARCHAR)
        ORDER BY entry, event_id
        LIMIT $7
    ) n
) e
ORDER BY later, CASE WHEN later THEN entry ELSE -entry END, CASE WHEN later THEN event_id END, CASE WHEN later THEN NULL ELSE event_id END DESC
