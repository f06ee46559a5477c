SELECT pid, event_id, func, "exit"
FROM window_calls
WHERE run = $1 AND anomalous AND "exit" > 0 AND func IN (/*names*/)
