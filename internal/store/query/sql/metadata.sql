SELECT pid AS program, rid AS "rank", tid AS thread, io_step, descr AS name, "value"
FROM metadata
WHERE run = $1 AND ($2::INTEGER IS NULL OR pid = $2::INTEGER) AND ($3::INTEGER IS NULL OR rid = $3::INTEGER)
  AND ($4::VARCHAR IS NULL OR descr LIKE $4::VARCHAR ESCAPE '\')
ORDER BY pid, rid, io_step, tid, descr, "value"
LIMIT $5 OFFSET $6
