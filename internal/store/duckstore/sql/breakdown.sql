-- How the GPUs of ranks spent their time, and collective operations compared over ranks. Schema 9 added these tables.

CREATE TABLE gpu_times (
    run INTEGER NOT NULL, pid INTEGER NOT NULL, rid INTEGER NOT NULL,
    step BIGINT, -- null: the entire rank
    start_us BIGINT NOT NULL, total_us BIGINT NOT NULL, compute_us BIGINT NOT NULL, communication_us BIGINT NOT NULL, memory_us BIGINT NOT NULL,
    exposed_communication_us BIGINT NOT NULL, exposed_memory_us BIGINT NOT NULL, overlap_us BIGINT NOT NULL, idle_us BIGINT NOT NULL,
    host_wait_us BIGINT NOT NULL, kernel_wait_us BIGINT NOT NULL, other_wait_us BIGINT NOT NULL,
    streams JSON NOT NULL -- of the entire rank
);

CREATE TABLE collectives (
    run INTEGER NOT NULL, collective INTEGER NOT NULL, -- from 1
    pid INTEGER NOT NULL, operation VARCHAR NOT NULL, process_group VARCHAR NOT NULL, group_size INTEGER NOT NULL, ranks_seen INTEGER NOT NULL,
    bytes BIGINT NOT NULL, dtype VARCHAR NOT NULL, calls BIGINT NOT NULL, latency_sum_us BIGINT NOT NULL, latency_max_us BIGINT NOT NULL,
    skews BIGINT NOT NULL, skew_sum_us BIGINT NOT NULL, skew_max_us BIGINT NOT NULL, last_ranks JSON NOT NULL, bus_bandwidth DOUBLE NOT NULL
);

CREATE TABLE clocks (
    run INTEGER NOT NULL, pid INTEGER NOT NULL, rid INTEGER NOT NULL, offset_us BIGINT NOT NULL, matched BIGINT NOT NULL
);
