-- What schema 2 lacks, for a file that can only be read: nothing is known of issues.

CREATE VIEW issues AS
SELECT NULL::INTEGER AS run, NULL::INTEGER AS issue, NULL::INTEGER AS pid, NULL::VARCHAR AS func, NULL::VARCHAR AS call_path, NULL::VARCHAR AS kind,
       NULL::VARCHAR AS "role", NULL::INTEGER AS cause, NULL::BIGINT AS anomalies, NULL::BIGINT AS lost_us, NULL::BIGINT AS longest_us,
       NULL::BIGINT AS ranks, NULL::BIGINT AS hosts, NULL::INTEGER AS worst_rank, NULL::BIGINT AS worst_rank_lost_us, NULL::BIGINT AS first_us,
       NULL::BIGINT AS last_us, NULL::VARCHAR AS trend, NULL::VARCHAR AS example, NULL::BIGINT AS waits, NULL::BIGINT AS wait_ranks,
       NULL::BIGINT AS waits_lost_us, NULL::DOUBLE AS before_us, NULL::DOUBLE AS after_us, NULL::JSON AS rank_list, NULL::JSON AS host_list, NULL::JSON AS over_time
WHERE false;

CREATE VIEW links AS
SELECT NULL::INTEGER AS run, NULL::INTEGER AS pid, NULL::INTEGER AS rid, NULL::VARCHAR AS event_id, NULL::INTEGER AS issue, NULL::VARCHAR AS "role",
       NULL::INTEGER AS culprit_pid, NULL::VARCHAR AS culprit_event_id, NULL::INTEGER AS late_rid, NULL::INTEGER AS hops, NULL::BIGINT AS waits,
       NULL::BIGINT AS wait_ranks, NULL::BIGINT AS waits_lost_us
WHERE false;
