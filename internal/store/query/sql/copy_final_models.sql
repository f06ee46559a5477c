SELECT run, pid, fn, model
FROM final_models
WHERE run = $1
