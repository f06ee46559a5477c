SELECT pid, event_id, type = 'SEND' AS sent, src, tar, tag, "timestamp", execdata_key = event_id AS own
FROM messages
WHERE run = $1 AND anomalous AND (type = 'SEND' OR execdata_key = event_id)
