SELECT event_id
FROM links
WHERE run = $1 AND pid = $2 AND issue = $3 AND rid IN (/*ranks*/) AND event_id IN (/*events*/)
