SELECT (SELECT count(*) FROM gpu_times WHERE run = $1) AS gpu_times, (SELECT count(*) FROM collectives WHERE run = $1) AS collectives
