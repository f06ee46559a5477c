-- Ranks, threads and GPUs compared with peers that do equal work. Schema 8 added these tables.

CREATE TABLE rank_loads (
    run INTEGER NOT NULL, pid INTEGER NOT NULL, rid INTEGER NOT NULL,
    tid BIGINT NOT NULL, -- -1: the entire rank
    device BOOLEAN NOT NULL, host TEXT COLLATE "C" NOT NULL, "role" INTEGER NOT NULL, peers INTEGER NOT NULL,
    elapsed_us BIGINT NOT NULL, useful_us BIGINT NOT NULL, wait_us BIGINT NOT NULL, sync_us BIGINT NOT NULL,
    ratio DOUBLE PRECISION, -- null without peers
    "pattern" TEXT COLLATE "C", from_s DOUBLE PRECISION, -- null if it was not slow
    to_s DOUBLE PRECISION, -- also null if it was slow to the end
    saved_us BIGINT NOT NULL, saved_share DOUBLE PRECISION NOT NULL,
    functions JSON NOT NULL, -- the ones with the most time
    PRIMARY KEY (run, pid, rid, tid, device)
);

CREATE TABLE load_windows (
    run INTEGER NOT NULL, pid INTEGER NOT NULL, rid INTEGER NOT NULL, tid BIGINT NOT NULL, device BOOLEAN NOT NULL,
    from_s DOUBLE PRECISION NOT NULL, to_s DOUBLE PRECISION NOT NULL, useful_us BIGINT NOT NULL, wait_us BIGINT NOT NULL,
    ratio DOUBLE PRECISION -- null without comparable work
);

CREATE INDEX load_windows_rank ON load_windows (run, pid, rid); -- small, because live runs replace all rows often

CREATE TABLE efficiency (
    run INTEGER NOT NULL, pid INTEGER NOT NULL, entire BOOLEAN NOT NULL, begin_us BIGINT NOT NULL, from_s DOUBLE PRECISION NOT NULL, to_s DOUBLE PRECISION NOT NULL,
    ranks INTEGER NOT NULL, parallel DOUBLE PRECISION NOT NULL, load_balance DOUBLE PRECISION NOT NULL, communication DOUBLE PRECISION NOT NULL,
    slowest_rank BIGINT NOT NULL,
    device_parallel DOUBLE PRECISION, device_load_balance DOUBLE PRECISION, -- null without GPUs
    PRIMARY KEY (run, pid, entire, from_s)
);

CREATE TABLE slow_peers (
    run INTEGER NOT NULL, slow_peer INTEGER NOT NULL, -- from 1, the costliest first
    pid INTEGER NOT NULL, "pattern" TEXT COLLATE "C" NOT NULL,
    host TEXT COLLATE "C", -- null unless it is a host
    ranks JSON NOT NULL, hosts JSON NOT NULL,
    tid BIGINT NOT NULL, -- -1 unless it is a thread
    device BOOLEAN NOT NULL, "role" INTEGER NOT NULL, peers INTEGER NOT NULL, weak BOOLEAN NOT NULL, ratio DOUBLE PRECISION NOT NULL,
    from_s DOUBLE PRECISION NOT NULL, to_s DOUBLE PRECISION, -- null if it lasted to the end
    lost_own_us BIGINT NOT NULL, lost_caused_us BIGINT NOT NULL, saved_us BIGINT NOT NULL, saved_share DOUBLE PRECISION NOT NULL,
    confidence DOUBLE PRECISION NOT NULL, windows JSON NOT NULL, functions JSON NOT NULL, counters JSON NOT NULL,
    twin INTEGER, -- null for none
    sync_share DOUBLE PRECISION NOT NULL, peer_sync_share DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (run, slow_peer)
);
