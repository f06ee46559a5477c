SELECT app AS program, counter, "count"::BIGINT AS "values", mean, stddev, minimum, maximum, accumulate AS sum
FROM counter_stats
WHERE run = $1 AND ($2::INTEGER IS NULL OR app = $2::INTEGER) AND ($3::VARCHAR IS NULL OR counter LIKE $3::VARCHAR ESCAPE '\')
ORDER BY app, counter
LIMIT $4
