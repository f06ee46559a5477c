-- Two executions of a program, and perhaps some whose ids are mixed of theirs.
SELECT pid, anomalous, doc::VARCHAR AS doc
FROM execution_documents
WHERE run = $1 AND pid = $2 AND rid IN ($3, $6) AND ev_step IN ($4, $7) AND ev_row IN ($5, $8)
