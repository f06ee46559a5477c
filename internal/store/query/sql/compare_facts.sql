-- No window functions: see function_table.sql.
SELECT program, name, "value", ranks, distinct_values, all_ranks
FROM (
    SELECT program, name, unnest("values"[1:$2::INTEGER]) AS "value", unnest(counts[1:$2::INTEGER]) AS ranks, distinct_values, all_ranks
    FROM (
        SELECT pid AS program, descr AS name, array_agg("value" ORDER BY ranks DESC, "value") AS "values", array_agg(ranks ORDER BY ranks DESC, "value") AS counts,
               count(*) AS distinct_values, sum(ranks)::BIGINT AS all_ranks
        FROM (
            SELECT pid, descr, "value", count(*) AS ranks
            FROM (SELECT DISTINCT pid, rid, descr, "value" FROM metadata WHERE run = $1 AND descr <> 'Hostname') t
            GROUP BY pid, descr, "value"
        ) c
        GROUP BY pid, descr
    ) a
) v
ORDER BY program, name, ranks DESC, "value"
