SELECT count(*) AS executions, min(entry) AS first_us, max("exit") AS last_us, count(CASE WHEN flagged THEN 1 END) AS anomalies,
       coalesce(sum(CASE WHEN flagged THEN lost_time END), 0)::BIGINT AS lost_us,
       coalesce(sum(CASE WHEN flagged THEN runtime_exclusive END), 0)::BIGINT AS anomalous_us,
       coalesce(max(CASE WHEN flagged THEN runtime_exclusive END), 0) AS longest_us, /*columns*/
FROM (
    SELECT *, anomalous AND status IS DISTINCT FROM 'withdrawn' AS flagged
    FROM all_executions
    WHERE run = $1
) e
WHERE /*where*/
GROUP BY /*by*/
