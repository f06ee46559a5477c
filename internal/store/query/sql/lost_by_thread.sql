SELECT pid, rid, tid, sum(lost_time::DOUBLE PRECISION)::BIGINT AS lost_us
FROM executions
WHERE run = $1 AND anomalous AND status IS DISTINCT FROM 'withdrawn'
GROUP BY pid, rid, tid
