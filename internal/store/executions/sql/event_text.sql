SELECT pid, anomalous, doc::VARCHAR AS doc
FROM execution_documents
WHERE run = $1 AND ev_text = $2 AND ($3::INTEGER IS NULL OR pid = $3::INTEGER)
ORDER BY pid
