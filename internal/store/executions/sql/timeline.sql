-- The lost time of anomalies by line, first and last column, as query.spread has it.
WITH a AS (
    SELECT kind, pid, rid, lost_time, entry - $2::BIGINT AS begun, greatest("exit", entry + 1) - $2::BIGINT AS ended
    FROM executions
    WHERE run = $1 AND entry < $3::BIGINT AND (entry >= $2::BIGINT OR "exit" > $2::BIGINT) AND /*where*/
)
SELECT kind, line, first_column, last_column, count(*) AS anomalies, sum(lost_time)::BIGINT AS lost_us,
       sum(CASE WHEN last_column = first_column THEN 0
                ELSE floor(lost_time::DOUBLE PRECISION * $4::BIGINT / (ended - begun))::BIGINT END)::BIGINT AS each_us,
       sum(CASE WHEN last_column = first_column THEN 0
                ELSE floor(lost_time::DOUBLE PRECISION * (ended - last_column * $4::BIGINT) / (ended - begun))::BIGINT END)::BIGINT AS tail_us
FROM (
    SELECT *, floor(begun::DOUBLE PRECISION / $4::BIGINT)::BIGINT AS first_column,
           floor((ended - 1)::DOUBLE PRECISION / $4::BIGINT)::BIGINT AS last_column
    FROM (
        /*lines*/
    ) l
) p
GROUP BY kind, line, first_column, last_column
