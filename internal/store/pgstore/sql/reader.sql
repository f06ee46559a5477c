-- Privileges of queries. They are granted when the tables are created, as far as the user
-- is allowed to; docs/postgresql.md has them for administrators.
GRANT USAGE ON SCHEMA chimbuko TO chimbuko_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA chimbuko TO chimbuko_reader;
