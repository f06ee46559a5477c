SELECT d.doc::VARCHAR AS doc
FROM (
    SELECT e.pid, e.rid, e.ev_step, e.ev_row, e.ev_text, e.entry
    FROM executions e
    WHERE e.run = $1 AND e.anomalous AND e.status IS DISTINCT FROM 'withdrawn' AND e.pid = $2 AND ($3::INTEGER IS NULL OR e.rid = $3::INTEGER)
      AND e.io_step BETWEEN $4::BIGINT AND $5::BIGINT AND e.outlier_severity >= $7::DOUBLE PRECISION AND e.outlier_score >= $8::DOUBLE PRECISION
      AND e.runtime_total >= $9::BIGINT
      AND ($6::BIGINT IS NULL OR e.fn IN (SELECT fn FROM functions f WHERE f.run = $1 AND f.pid = $2 AND f.fid = $6::BIGINT))
    ORDER BY e.entry /*order*/, e.rid, e.ev_step, e.ev_row
    LIMIT $10
) a
JOIN execution_documents d ON d.run = $1 AND d.anomalous AND d.pid = a.pid AND d.rid = a.rid AND d.ev_step = a.ev_step AND d.ev_row = a.ev_row
    AND d.ev_text IS NOT DISTINCT FROM a.ev_text
ORDER BY a.entry /*order*/, a.rid, a.ev_step, a.ev_row
