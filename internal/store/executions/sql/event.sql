SELECT pid, anomalous, doc::VARCHAR AS doc
FROM execution_documents
WHERE run = $1 AND rid = $2 AND ev_step = $3 AND ev_row = $4 AND ($5::INTEGER IS NULL OR pid = $5::INTEGER)
ORDER BY pid
