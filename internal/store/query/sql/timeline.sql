-- The lost time of anomalies by column. An anomaly that lies in one column counts there. A
-- longer one is spread evenly from its entry to its exit: "each" goes to every column that it
-- fills, "tail" to the last one, and the rest to the first one, so that the sum is exact.
-- Anomalies with the same first and last column are added up before they are spread. "rate"
-- is what a column adds to itself and all columns after it.
WITH found AS (
    SELECT pid, rid, coalesce(kind, '') AS kind, lost_time AS lost, entry - $2::BIGINT AS begun,
           greatest("exit", entry + 1) - $2::BIGINT AS ended
    FROM executions
    WHERE run = $1 AND anomalous AND status IS DISTINCT FROM 'withdrawn' AND entry < $3::BIGINT AND (entry >= $2::BIGINT OR "exit" > $2::BIGINT) /*where*/
), named AS (
    /*named*/
), shared AS (
    SELECT k, c0, c1, greatest(c0 + 1, 0) AS c, count(*) AS n, sum(lost)::BIGINT AS lost,
           sum(CASE WHEN c1 = c0 THEN 0 ELSE floor(lost::DOUBLE PRECISION * $4::BIGINT / (ended - begun))::BIGINT END)::BIGINT AS each,
           sum(CASE WHEN c1 = c0 THEN 0 ELSE floor(lost::DOUBLE PRECISION * (ended - c1 * $4::BIGINT) / (ended - begun))::BIGINT END)::BIGINT AS tail
    FROM (
        SELECT k, lost, begun, ended, floor(begun::DOUBLE PRECISION / $4::BIGINT)::BIGINT AS c0,
               floor((ended - 1)::DOUBLE PRECISION / $4::BIGINT)::BIGINT AS c1
        FROM named
    ) p
    GROUP BY k, c0, c1
), parts AS (
    SELECT k, c0 AS c, lost - tail - each * greatest(c1 - c0 - 1, 0) AS here, 0::BIGINT AS rate, n FROM shared WHERE c0 >= 0
    UNION ALL
    SELECT k, c1, tail, 0, 0 FROM shared WHERE c1 > c0 AND c1 < $5::BIGINT
    UNION ALL
    SELECT k, c, 0, each, 0 FROM shared WHERE c < c1 AND c < $5::BIGINT
    UNION ALL
    SELECT k, c1, 0, -each, 0 FROM shared WHERE c < c1 AND c1 < $5::BIGINT
)
SELECT k, c AS "column", sum(here)::BIGINT AS lost_us, sum(rate)::BIGINT AS rate_us, sum(n)::BIGINT AS anomalies
FROM parts
GROUP BY k, c
ORDER BY k, c
