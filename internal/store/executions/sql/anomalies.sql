SELECT coalesce(nullif(e.ev_text, ''), e.rid || ':' || e.ev_step || ':' || e.ev_row) AS event_id,
       (e.entry - $2::BIGINT) / 1e6::DOUBLE PRECISION AS at_s, e.runtime_exclusive AS exclusive_us, e.runtime_total AS inclusive_us,
       e.lost_time AS lost_us, e.outlier_severity AS severity, e.outlier_score AS score, e.kind, e.status, e.io_step,
       e.pid AS program, e.rid AS "rank", e.tid AS thread, CASE WHEN e.hostname = 'Unknown' THEN '' ELSE e.hostname END AS host, f.name AS "function"
FROM (
    SELECT *
    FROM executions
    WHERE run = $1 AND /*where*/
    ORDER BY /*order*/
    LIMIT $3 OFFSET $4
) e
JOIN functions f ON f.run = e.run AND f.pid = e.pid AND f.fn = e.fn
ORDER BY /*outer*/
