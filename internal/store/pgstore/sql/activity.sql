-- What the ranks do over time. Schema 11 added this table.

CREATE TABLE activity (
    run INTEGER NOT NULL PRIMARY KEY,
    packed TEXT COLLATE "C" NOT NULL -- all ranks, as Base64; see docs/sql.md
);
