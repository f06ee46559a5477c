-- Schema 2: anomalies have a kind, and say why they are anomalies.

ALTER TABLE executions ADD COLUMN kind VARCHAR; -- null for typical executions, and in records of before
ALTER TABLE executions ADD COLUMN why VARCHAR; -- the same
ALTER TABLE rollups ADD COLUMN kind VARCHAR DEFAULT ''; -- empty where executions have none
