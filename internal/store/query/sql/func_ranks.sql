SELECT rid AS "rank", nullif(hostname, 'Unknown') AS host, count(*) AS anomalies, sum(lost_time)::BIGINT AS lost_us,
       max(runtime_exclusive) AS longest_us, max(outlier_score) AS score, (min(entry) - $2::BIGINT) / 1e6::DOUBLE PRECISION AS first_s,
       (max("exit") - $2::BIGINT) / 1e6::DOUBLE PRECISION AS last_s
FROM executions
WHERE run = $1 AND pid = $3 AND fn = $4 AND anomalous AND status IS DISTINCT FROM 'withdrawn'
GROUP BY rid, hostname
ORDER BY lost_us DESC, rid, hostname
LIMIT $5
