SELECT pid, event_id, type = 'SEND' AS sent, src, tar, bytes::DOUBLE PRECISION AS bytes, "timestamp", execdata_key = event_id AS own
FROM messages
WHERE run = $1 AND /*events*/
