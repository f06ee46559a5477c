SELECT pid, event_id, max(entry) AS until
FROM window_calls
WHERE run = $1 AND anomalous
GROUP BY pid, event_id
