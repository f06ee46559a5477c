-- Schema 4: all calls of a run by call path, over all ranks of a program.

CREATE TABLE path_profiles (
    run          INTEGER NOT NULL,
    pid          INTEGER NOT NULL,
    path         INTEGER NOT NULL,
    parent       INTEGER, -- path without its last function; null for none
    fn           INTEGER NOT NULL, -- its last function
    calls        BIGINT NOT NULL,
    exclusive_us BIGINT NOT NULL
);
