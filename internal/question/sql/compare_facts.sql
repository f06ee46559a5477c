SELECT pid AS program, descr AS name, "value", ranks, distinct_values, all_ranks
FROM (
    SELECT pid, descr, "value", count(*) AS ranks, count(*) OVER (PARTITION BY pid, descr) AS distinct_values,
           sum(count(*)) OVER (PARTITION BY pid, descr)::BIGINT AS all_ranks,
           row_number() OVER (PARTITION BY pid, descr ORDER BY count(*) DESC, "value") AS place
    FROM (SELECT DISTINCT pid, rid, descr, "value" FROM metadata WHERE run = $1 AND descr <> 'Hostname') t
    GROUP BY pid, descr, "value"
) v
WHERE place <= $2
ORDER BY pid, descr, place
