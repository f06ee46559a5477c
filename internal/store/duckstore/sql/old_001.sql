-- What schema 1 lacks, for a file that can only be read: views in memory, over the
-- tables of prov, with all columns of today.

CREATE VIEW executions AS SELECT *, NULL::VARCHAR AS kind, NULL::VARCHAR AS why FROM prov.main.executions;

CREATE VIEW rollups AS SELECT *, '' AS kind FROM prov.main.rollups;
