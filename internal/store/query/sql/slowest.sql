SELECT pid, fname, exclusive_maximum, exclusive_mean, exclusive_count::BIGINT AS calls
FROM profiles
WHERE run = $1 AND exclusive_count > 0
ORDER BY exclusive_maximum DESC, pid, fname
LIMIT $2
