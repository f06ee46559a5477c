SELECT pid, rid, -1 AS tid, sum(lost_us::DOUBLE PRECISION)::BIGINT AS lost_us
FROM /*rollups*/
WHERE run = $1
GROUP BY pid, rid
