-- Ranks, threads and GPUs compared with peers that do equal work. Schema 8 added these tables.

CREATE TABLE rank_loads (
    run INTEGER NOT NULL, pid INTEGER NOT NULL, rid INTEGER NOT NULL,
    tid BIGINT NOT NULL, -- -1: the entire rank
    device BOOLEAN NOT NULL, host VARCHAR NOT NULL, "role" INTEGER NOT NULL, peers INTEGER NOT NULL,
    elapsed_us BIGINT NOT NULL, useful_us BIGINT NOT NULL, wait_us BIGINT NOT NULL, sync_us BIGINT NOT NULL,
    ratio DOUBLE, -- null without peers
    "pattern" VARCHAR, from_s DOUBLE, -- null if it was not slow
    to_s DOUBLE, -- also null if it was slow to the end
    saved_us BIGINT NOT NULL, saved_share DOUBLE NOT NULL,
    functions JSON NOT NULL -- the ones with the most time
);

CREATE TABLE load_windows (
    run INTEGER NOT NULL, pid INTEGER NOT NULL, rid INTEGER NOT NULL, tid BIGINT NOT NULL, device BOOLEAN NOT NULL,
    from_s DOUBLE NOT NULL, to_s DOUBLE NOT NULL, useful_us BIGINT NOT NULL, wait_us BIGINT NOT NULL,
    ratio DOUBLE -- null without comparable work
);

CREATE TABLE efficiency (
    run INTEGER NOT NULL, pid INTEGER NOT NULL, entire BOOLEAN NOT NULL, begin_us BIGINT NOT NULL, from_s DOUBLE NOT NULL, to_s DOUBLE NOT NULL,
    ranks INTEGER NOT NULL, parallel DOUBLE NOT NULL, load_balance DOUBLE NOT NULL, communication DOUBLE NOT NULL,
    slowest_rank BIGINT NOT NULL,
    device_parallel DOUBLE, device_load_balance DOUBLE -- null without GPUs
);

CREATE TABLE slow_peers (
    run INTEGER NOT NULL, slow_peer INTEGER NOT NULL, -- from 1, the costliest first
    pid INTEGER NOT NULL, "pattern" VARCHAR NOT NULL,
    host VARCHAR, -- null unless it is a host
    ranks JSON NOT NULL, hosts JSON NOT NULL,
    tid BIGINT NOT NULL, -- -1 unless it is a thread
    device BOOLEAN NOT NULL, "role" INTEGER NOT NULL, peers INTEGER NOT NULL, weak BOOLEAN NOT NULL, ratio DOUBLE NOT NULL,
    from_s DOUBLE NOT NULL, to_s DOUBLE, -- null if it lasted to the end
    lost_own_us BIGINT NOT NULL, lost_caused_us BIGINT NOT NULL, saved_us BIGINT NOT NULL, saved_share DOUBLE NOT NULL,
    confidence DOUBLE NOT NULL, windows JSON NOT NULL, functions JSON NOT NULL, counters JSON NOT NULL,
    twin INTEGER, -- null for none
    sync_share DOUBLE NOT NULL, peer_sync_share DOUBLE NOT NULL
);
