-- Anomalies by line, added up: those within one column, and those that cross columns and have the same times and lost time.
WITH a AS (
    SELECT kind, pid, rid, lost_time, entry, greatest("exit", entry + 1) AS "exit",
           floor((entry - $2::BIGINT)::DOUBLE PRECISION / $4::BIGINT)::BIGINT AS first_column
    FROM executions
    WHERE run = $1 AND entry < $3::BIGINT AND (entry >= $2::BIGINT OR "exit" > $2::BIGINT) AND /*where*/
)
SELECT kind, line, min(entry) AS entry, coalesce(crossing_exit, min(entry) + 1) AS "exit", count(*) AS anomalies,
       sum(lost_time)::BIGINT AS lost_us
FROM (
    SELECT kind, line, lost_time, entry, first_column,
           CASE WHEN crosses THEN entry END AS crossing_entry,
           CASE WHEN crosses THEN "exit" END AS crossing_exit,
           CASE WHEN crosses THEN lost_time END AS crossing_lost
    FROM (
        SELECT *, "exit" > $2::BIGINT + (first_column + 1) * $4::BIGINT AS crosses
        FROM (
            /*lines*/
        ) l
    ) c
) p
GROUP BY kind, line, first_column, crossing_entry, crossing_exit, crossing_lost
