SELECT pid, fn, sum(CASE WHEN flagged THEN 1 ELSE 0 END) AS anomalies, sum(CASE WHEN flagged THEN lost_time ELSE 0 END) AS lost_us,
           sum(CASE WHEN flagged THEN runtime_exclusive ELSE 0 END) AS anomalous_us, bool_or(is_gpu_event) AS on_gpu
    FROM (
        SELECT pid, fn, lost_time, runtime_exclusive, is_gpu_event, anomalous AND status IS DISTINCT FROM 'withdrawn' AS flagged
        FROM executions
        WHERE run = $1 AND ($2::INTEGER IS NULL OR pid = $2::INTEGER) AND ($4::INTEGER IS NULL OR fn = $4::INTEGER)
    ) e
    GROUP BY pid, fn
