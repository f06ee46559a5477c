SELECT min(entry) AS since
FROM (
    SELECT entry
    FROM executions
    WHERE run = $1 AND anomalous AND status IS DISTINCT FROM 'withdrawn'
    ORDER BY entry DESC
    LIMIT $2
) e
