SELECT a.anomalies, a.lost_us, p.fns
FROM (
    SELECT path, sum(CASE WHEN flagged THEN 1 ELSE 0 END)::BIGINT AS anomalies,
           coalesce(sum(CASE WHEN flagged THEN lost_time END), 0)::BIGINT AS lost_us
    FROM (
        SELECT path, lost_time, anomalous AND status IS DISTINCT FROM 'withdrawn' AS flagged
        FROM executions
        WHERE run = $1 AND pid = $2 AND fn = $3
    ) e
    GROUP BY path
) a
JOIN paths p ON p.run = $1 AND p.pid = $2 AND p.path = a.path
ORDER BY a.lost_us DESC, a.anomalies DESC, a.path
LIMIT $4
