SELECT pid, rid, tid, descr, "value"
FROM metadata
WHERE run = $1 AND descr IN ('Hostname', 'CUDA Device', 'CUDA Stream')
