-- What the ranks do over time. Schema 11 added this table.

CREATE TABLE activity (
    run INTEGER NOT NULL,
    packed VARCHAR NOT NULL -- all ranks, as Base64; see docs/sql.md
);
