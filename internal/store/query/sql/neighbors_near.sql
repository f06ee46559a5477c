-- The anomalies of a function and call path that were entered at or next to a time: the
-- nearest of each side, in order of time. Which of them are of the issue is still to be told.
SELECT coalesce(nullif(ev_text, ''), rid || ':' || ev_step || ':' || ev_row) AS event_id, rid, entry
FROM (
    SELECT * FROM (
        SELECT rid, ev_step, ev_row, ev_text, entry
        FROM executions
        WHERE run = $1 AND pid = $2 AND fn = $3 AND path = $4 AND anomalous AND entry < $5::BIGINT
        ORDER BY entry DESC
        LIMIT $6
    ) b
    UNION ALL
    SELECT * FROM (
        SELECT rid, ev_step, ev_row, ev_text, entry
        FROM executions
        WHERE run = $1 AND pid = $2 AND fn = $3 AND path = $4 AND anomalous AND entry >= $5::BIGINT
        ORDER BY entry
        LIMIT $6
    ) n
) e
ORDER BY entry, event_id
