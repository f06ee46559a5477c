SELECT run, pid, fn, exclusive_count, exclusive_accumulate, exclusive_mean, exclusive_maximum, inclusive_accumulate, inclusive_mean
FROM profiles
WHERE run = $1
