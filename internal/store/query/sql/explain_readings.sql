SELECT app, counter, mean, stddev, "count"
FROM counter_stats
WHERE run = $1
