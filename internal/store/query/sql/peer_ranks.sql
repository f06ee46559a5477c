known AS (
    SELECT pid, rid, max(host) AS host
    FROM (
        SELECT pid, rid, max(CASE WHEN descr = 'Hostname' THEN "value" ELSE '' END) AS host FROM metadata WHERE run = $1 GROUP BY pid, rid
        UNION ALL
        SELECT pid, rid, max(CASE WHEN hostname = 'Unknown' THEN '' ELSE hostname END) FROM executions WHERE run = $1 GROUP BY pid, rid
        UNION ALL
        SELECT pid, rid, max(host) FROM rank_loads WHERE run = $1 GROUP BY pid, rid
    ) r
    GROUP BY pid, rid
), lost AS (
    SELECT pid, rid, sum(lost_us::DOUBLE PRECISION) AS lost_us FROM /*rollups*/ WHERE run = $1 GROUP BY pid, rid
), units AS (
    SELECT k.pid, k.rid, l.tid, k.host, l."role", l.peers, l.useful_us, l.wait_us,
           CASE WHEN l.rid IS NOT NULL THEN coalesce(t.lost_us, 0) END AS lost_us,
           l.ratio, l."pattern", l.from_s, l.to_s, l.saved_us, l.saved_share
    FROM known k
    LEFT JOIN rank_loads l ON l.run = $1 AND l.pid = k.pid AND l.rid = k.rid AND l.tid = -1 AND NOT l.device
    LEFT JOIN lost t ON t.pid = k.pid AND t.rid = k.rid
)
