SELECT pid, fn, exclusive_accumulate, exclusive_count::BIGINT AS calls
FROM profiles
WHERE run = $1 AND ($2::INTEGER IS NULL OR pid = $2::INTEGER) AND exclusive_count > 0
