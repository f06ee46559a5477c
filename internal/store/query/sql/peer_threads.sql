lost AS (
    SELECT pid, rid, tid, sum(lost_time::DOUBLE PRECISION) AS lost_us
    FROM executions
    WHERE run = $1 AND anomalous AND status IS DISTINCT FROM 'withdrawn'
    GROUP BY pid, rid, tid
), units AS (
    SELECT l.pid, l.rid, l.tid, l.host, l."role", l.peers, l.useful_us, l.wait_us, coalesce(t.lost_us, 0) AS lost_us, l.ratio, l."pattern",
           l.from_s, l.to_s, l.saved_us, l.saved_share
    FROM rank_loads l
    LEFT JOIN lost t ON t.pid = l.pid AND t.rid = l.rid AND t.tid = l.tid
    WHERE l.run = $1 AND l.device = /*device*/ AND (l.device OR l.tid >= 0)
)
