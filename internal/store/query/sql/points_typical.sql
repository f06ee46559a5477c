-- Of many, some of all times: the order is one in which nothing else is.
SELECT event_id, entry, runtime_exclusive, lost_time, rid, hostname, status
FROM normalexecs
WHERE run = $1 AND pid = $2 AND fn = $3
ORDER BY /*lot*/, entry, event_id
LIMIT $4
