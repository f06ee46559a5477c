SELECT pid, rid, offset_us, matched
FROM clocks
WHERE run = $1
ORDER BY pid, rid
