-- Schema 2: anomalies have a kind, and say why they are anomalies. The sentence is
-- in detail: it is read seldom, and the heads of rows must stay narrow.

ALTER TABLE executions ADD COLUMN kind TEXT COLLATE "C"; -- null for typical executions, and in records of before
ALTER TABLE executions ALTER COLUMN kind SET STORAGE MAIN;

ALTER TABLE rollups ADD COLUMN kind TEXT COLLATE "C" NOT NULL DEFAULT ''; -- empty where executions have none
ALTER TABLE rollups DROP CONSTRAINT rollups_pkey;
ALTER TABLE rollups ADD PRIMARY KEY (run, pid, fn, path, rid, kind);
