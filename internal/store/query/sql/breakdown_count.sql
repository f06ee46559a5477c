SELECT count(*) AS "value" FROM gpu_times WHERE run = $1
