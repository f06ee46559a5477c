SELECT e.kept, e.anomalies, e.confirmed, e.promoted, e.withdrawn, e.last_us, e.lost_us,
       (SELECT count(*) FROM functions WHERE run = $1) AS functions,
       p.profiled, p.warm, p.calls, p.longest_us
FROM (
    SELECT count(*) AS kept, coalesce(sum(CASE WHEN anomalous AND status IS DISTINCT FROM 'withdrawn' THEN 1 ELSE 0 END), 0)::BIGINT AS anomalies,
           coalesce(sum(CASE WHEN anomalous AND status = 'confirmed' THEN 1 ELSE 0 END), 0)::BIGINT AS confirmed,
           coalesce(sum(CASE WHEN anomalous AND status = 'promoted' THEN 1 ELSE 0 END), 0)::BIGINT AS promoted,
           coalesce(sum(CASE WHEN anomalous AND status = 'withdrawn' THEN 1 ELSE 0 END), 0)::BIGINT AS withdrawn,
           max(greatest("exit", io_step_tend)) AS last_us,
           coalesce(sum(CASE WHEN anomalous AND status IS DISTINCT FROM 'withdrawn' THEN lost_time ELSE 0 END), 0)::BIGINT AS lost_us
    FROM executions
    WHERE run = $1
) e
CROSS JOIN (
    SELECT count(*) AS profiled, coalesce(sum(CASE WHEN exclusive_count >= $2::DOUBLE PRECISION THEN 1 ELSE 0 END), 0)::BIGINT AS warm,
           coalesce(sum(exclusive_count), 0)::BIGINT AS calls, max(inclusive_maximum) AS longest_us
    FROM profiles
    WHERE run = $1
) p
