-- Schema 3: what is wrong with a run, and which anomaly has to do with which other.
-- Both are made when a run has ended; records that are written later remove them.

CREATE TABLE issues (
    run INTEGER NOT NULL, issue INTEGER NOT NULL, pid INTEGER NOT NULL, func VARCHAR NOT NULL, call_path VARCHAR NOT NULL, kind VARCHAR NOT NULL,
    "role" VARCHAR, -- null for none
    cause INTEGER, -- issue; null for none
    anomalies BIGINT NOT NULL, lost_us BIGINT NOT NULL, longest_us BIGINT NOT NULL, ranks BIGINT NOT NULL, hosts BIGINT NOT NULL,
    worst_rank INTEGER, worst_rank_lost_us BIGINT, -- null for lasting changes
    first_us BIGINT NOT NULL, last_us BIGINT NOT NULL,
    trend VARCHAR, -- null for none
    example VARCHAR, -- null for lasting changes
    waits BIGINT NOT NULL, wait_ranks BIGINT NOT NULL, waits_lost_us BIGINT NOT NULL,
    before_us DOUBLE, after_us DOUBLE, -- of lasting changes; null for others
    rank_list JSON NOT NULL, host_list JSON NOT NULL, over_time JSON NOT NULL
);

CREATE TABLE links (
    run INTEGER NOT NULL, pid INTEGER NOT NULL, rid INTEGER NOT NULL, event_id VARCHAR NOT NULL, issue INTEGER NOT NULL,
    "role" VARCHAR, -- null for none
    culprit_pid INTEGER, culprit_event_id VARCHAR, -- null where none is known
    late_rid INTEGER, -- null where it is not known
    hops INTEGER NOT NULL, waits BIGINT NOT NULL, wait_ranks BIGINT NOT NULL, waits_lost_us BIGINT NOT NULL
);
