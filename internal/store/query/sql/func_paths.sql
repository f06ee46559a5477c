SELECT a.anomalies, a.normal, a.lost_us, a.longest_us, a.ranks, c.depth, c.call_path
FROM (
    SELECT path, sum(CASE WHEN flagged THEN 1 ELSE 0 END)::BIGINT AS anomalies, sum(CASE WHEN anomalous THEN 0 ELSE 1 END)::BIGINT AS normal,
           coalesce(sum(CASE WHEN flagged THEN lost_time END), 0)::BIGINT AS lost_us,
           max(CASE WHEN flagged THEN runtime_exclusive END) AS longest_us, count(DISTINCT rid) AS ranks
    FROM (
        SELECT *, anomalous AND status IS DISTINCT FROM 'withdrawn' AS flagged
        FROM executions
        WHERE run = $1 AND pid = $2 AND fn = $3
    ) e
    GROUP BY path
) a
LEFT JOIN call_paths c ON c.run = $1 AND c.pid = $2 AND c.path = a.path
ORDER BY a.lost_us DESC, a.anomalies DESC, c.call_path
LIMIT $4
