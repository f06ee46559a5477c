SELECT pid, rid, tid, descr, "value"
FROM metadata
WHERE run = $1 AND (descr = 'CUDA Device' OR descr = 'CUDA Stream')
