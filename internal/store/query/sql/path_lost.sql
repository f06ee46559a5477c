SELECT pid, fn, path, sum(lost_us)::BIGINT AS lost_us, sum(anomalies)::BIGINT AS anomalies
FROM /*rollups*/
WHERE run = $1 AND ($2::INTEGER IS NULL OR pid = $2::INTEGER)
GROUP BY pid, fn, path
