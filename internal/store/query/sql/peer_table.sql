WITH /*units*/
SELECT pid AS program, '[' || string_agg(rid::VARCHAR, ',' ORDER BY rid) || ']' AS ranks, /*thread*/ AS tid,
       CASE WHEN min(host) = max(host) THEN min(host) ELSE '' END AS host,
       CASE WHEN min("role") = max("role") THEN min("role") END AS "role", min(peers) AS peers,
       count(*) AS units, count(useful_us) AS units_with_data, count("pattern") AS slow_units,
       sum(useful_us)::BIGINT AS useful_us, sum(wait_us)::BIGINT AS wait_us, sum(lost_us)::BIGINT AS lost_us,
       sum(CASE WHEN ratio > 0 THEN useful_us END)::DOUBLE PRECISION / nullif(sum(CASE WHEN ratio > 0 THEN useful_us / ratio END), 0) AS ratio,
       (array_agg("pattern" ORDER BY saved_us DESC NULLS LAST, "pattern" NULLS LAST, rid))[1] AS "pattern",
       (array_agg(from_s ORDER BY saved_us DESC NULLS LAST, "pattern" NULLS LAST, rid))[1] AS from_s,
       (array_agg(to_s ORDER BY saved_us DESC NULLS LAST, "pattern" NULLS LAST, rid))[1] AS to_s,
       max(saved_us) AS saved_us, max(saved_share) AS saved_share,
       count(*) OVER () AS all_rows, (sum(CASE WHEN count(useful_us) = 0 THEN 1 ELSE 0 END) OVER ())::BIGINT AS empty_rows
FROM units
WHERE $2::INTEGER IS NULL OR pid = $2::INTEGER
GROUP BY pid, /*key*/
ORDER BY saved_us DESC NULLS LAST, ratio DESC NULLS LAST, pid, min(rid), min(tid)
LIMIT $3
