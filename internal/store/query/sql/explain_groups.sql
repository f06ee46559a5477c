SELECT count(*) AS executions, coalesce(sum(lost_time), 0)::BIGINT AS lost_us, /*columns*/
FROM all_executions
WHERE run = $1 AND anomalous = $2::BOOLEAN AND $3::BIGINT > 0 AND status IS DISTINCT FROM 'withdrawn' /*where*/
GROUP BY /*by*/
