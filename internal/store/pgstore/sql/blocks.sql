-- Schema 13 added the table blocks and the functions that unpack it.
--
-- A block has the call stacks, windows, messages and counters of some executions, each of which has a slot, from 0. Every property
-- is a list over the calls, messages or values of all slots; those of a slot end at element frame_end[slot + 1] and so on. A number
-- n is split: a part from -32768 to 32767 is in one list, and the rest, divided by 65536, in a list with the suffix _hi, because
-- PostgreSQL compresses equal values well and small ones badly. A list of zeros is null, except flags and names.
--
-- Steps and rows are relative to those of the execution's id, times (at) to its entry, partners to its rank. fn is the number of
-- a function. flags of calls: 1 anomalous, 2 not ended, 4 without a parent; of messages: 1 received, 2 of unknown size.

CREATE SEQUENCE block_numbers AS INTEGER;

CREATE TABLE blocks (
    run   INTEGER NOT NULL,
    block INTEGER NOT NULL,
    frame_end INTEGER[] NOT NULL, frame_flags SMALLINT[], frame_fn SMALLINT[], frame_fn_hi INTEGER[], frame_step SMALLINT[],
    frame_step_hi INTEGER[], frame_row SMALLINT[], frame_row_hi INTEGER[], frame_at SMALLINT[], frame_at_hi INTEGER[],
    frame_time SMALLINT[], frame_time_hi INTEGER[],
    call_end INTEGER[] NOT NULL, call_flags SMALLINT[], call_fn SMALLINT[], call_fn_hi INTEGER[], call_step SMALLINT[],
    call_step_hi INTEGER[], call_row SMALLINT[], call_row_hi INTEGER[], call_parent_step SMALLINT[], call_parent_step_hi INTEGER[],
    call_parent_row SMALLINT[], call_parent_row_hi INTEGER[], call_at SMALLINT[], call_at_hi INTEGER[], call_time SMALLINT[],
    call_time_hi INTEGER[],
    message_end INTEGER[] NOT NULL, message_flags SMALLINT[], message_partner SMALLINT[], message_partner_hi INTEGER[],
    message_bytes SMALLINT[], message_bytes_hi INTEGER[], message_tag SMALLINT[], message_tag_hi INTEGER[], message_step SMALLINT[],
    message_step_hi INTEGER[], message_row SMALLINT[], message_row_hi INTEGER[], message_at SMALLINT[], message_at_hi INTEGER[],
    counter_end INTEGER[] NOT NULL, counter_idx SMALLINT[], counter_idx_hi INTEGER[], counter_at SMALLINT[], counter_at_hi INTEGER[],
    counter_name TEXT[] COLLATE "C", counter_value BIGINT[],
    PRIMARY KEY (run, block)
);

-- Compressed blocks are small enough to stay in the table.
ALTER TABLE blocks SET (toast_tuple_target = 8160);
DO $$
DECLARE
    c name;
BEGIN
    FOR c IN SELECT attname FROM pg_catalog.pg_attribute WHERE attrelid = 'blocks'::regclass AND attnum > 2 AND NOT attisdropped LOOP
        EXECUTE format('ALTER TABLE blocks ALTER COLUMN %I SET COMPRESSION lz4', c);
    END LOOP;
EXCEPTION WHEN feature_not_supported THEN -- a server built without lz4
END $$;

-- The calls, messages and values of a slot. PostgreSQL inserts the bodies of these functions into the views.

CREATE FUNCTION block_frames(b blocks, slot smallint)
RETURNS TABLE ("position" bigint, flags smallint, fn integer, step integer, "row" bigint, "at" bigint, "time" bigint)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 8 AS $$
SELECT s.n, s.flags, (coalesce(s.fn, 0) + 65536 * coalesce(s.fn_hi, 0)::bigint)::integer,
       (coalesce(s.step, 0) + 65536 * coalesce(s.step_hi, 0)::bigint)::integer,
       coalesce(s."row", 0) + 65536 * coalesce(s.row_hi, 0)::bigint, coalesce(s."at", 0) + 65536 * coalesce(s.at_hi, 0)::bigint,
       coalesce(s."time", 0) + 65536 * coalesce(s.time_hi, 0)::bigint
FROM unnest(
    b.frame_flags[coalesce(b.frame_end[slot], 0) + 1 : b.frame_end[slot + 1]],
    b.frame_fn[coalesce(b.frame_end[slot], 0) + 1 : b.frame_end[slot + 1]],
    b.frame_fn_hi[coalesce(b.frame_end[slot], 0) + 1 : b.frame_end[slot + 1]],
    b.frame_step[coalesce(b.frame_end[slot], 0) + 1 : b.frame_end[slot + 1]],
    b.frame_step_hi[coalesce(b.frame_end[slot], 0) + 1 : b.frame_end[slot + 1]],
    b.frame_row[coalesce(b.frame_end[slot], 0) + 1 : b.frame_end[slot + 1]],
    b.frame_row_hi[coalesce(b.frame_end[slot], 0) + 1 : b.frame_end[slot + 1]],
    b.frame_at[coalesce(b.frame_end[slot], 0) + 1 : b.frame_end[slot + 1]],
    b.frame_at_hi[coalesce(b.frame_end[slot], 0) + 1 : b.frame_end[slot + 1]],
    b.frame_time[coalesce(b.frame_end[slot], 0) + 1 : b.frame_end[slot + 1]],
    b.frame_time_hi[coalesce(b.frame_end[slot], 0) + 1 : b.frame_end[slot + 1]]
    ) WITH ORDINALITY AS s(flags, fn, fn_hi, step, step_hi, "row", row_hi, "at", at_hi, "time", time_hi, n)
$$;

CREATE FUNCTION block_calls(b blocks, slot smallint)
RETURNS TABLE ("position" bigint, flags smallint, fn integer, step integer, "row" bigint, parent_step integer, parent_row bigint,
    "at" bigint, "time" bigint)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 20 AS $$
SELECT s.n, s.flags, (coalesce(s.fn, 0) + 65536 * coalesce(s.fn_hi, 0)::bigint)::integer,
       (coalesce(s.step, 0) + 65536 * coalesce(s.step_hi, 0)::bigint)::integer,
       coalesce(s."row", 0) + 65536 * coalesce(s.row_hi, 0)::bigint,
       (coalesce(s.parent_step, 0) + 65536 * coalesce(s.parent_step_hi, 0)::bigint)::integer,
       coalesce(s.parent_row, 0) + 65536 * coalesce(s.parent_row_hi, 0)::bigint,
       coalesce(s."at", 0) + 65536 * coalesce(s.at_hi, 0)::bigint, coalesce(s."time", 0) + 65536 * coalesce(s.time_hi, 0)::bigint
FROM unnest(
    b.call_flags[coalesce(b.call_end[slot], 0) + 1 : b.call_end[slot + 1]],
    b.call_fn[coalesce(b.call_end[slot], 0) + 1 : b.call_end[slot + 1]],
    b.call_fn_hi[coalesce(b.call_end[slot], 0) + 1 : b.call_end[slot + 1]],
    b.call_step[coalesce(b.call_end[slot], 0) + 1 : b.call_end[slot + 1]],
    b.call_step_hi[coalesce(b.call_end[slot], 0) + 1 : b.call_end[slot + 1]],
    b.call_row[coalesce(b.call_end[slot], 0) + 1 : b.call_end[slot + 1]],
    b.call_row_hi[coalesce(b.call_end[slot], 0) + 1 : b.call_end[slot + 1]],
    b.call_parent_step[coalesce(b.call_end[slot], 0) + 1 : b.call_end[slot + 1]],
    b.call_parent_step_hi[coalesce(b.call_end[slot], 0) + 1 : b.call_end[slot + 1]],
    b.call_parent_row[coalesce(b.call_end[slot], 0) + 1 : b.call_end[slot + 1]],
    b.call_parent_row_hi[coalesce(b.call_end[slot], 0) + 1 : b.call_end[slot + 1]],
    b.call_at[coalesce(b.call_end[slot], 0) + 1 : b.call_end[slot + 1]],
    b.call_at_hi[coalesce(b.call_end[slot], 0) + 1 : b.call_end[slot + 1]],
    b.call_time[coalesce(b.call_end[slot], 0) + 1 : b.call_end[slot + 1]],
    b.call_time_hi[coalesce(b.call_end[slot], 0) + 1 : b.call_end[slot + 1]]
    ) WITH ORDINALITY AS s(flags, fn, fn_hi, step, step_hi, "row", row_hi, parent_step, parent_step_hi, parent_row, parent_row_hi, "at",
    at_hi, "time", time_hi, n)
$$;

CREATE FUNCTION block_messages(b blocks, slot smallint)
RETURNS TABLE ("position" bigint, flags smallint, partner integer, bytes bigint, tag integer, step integer, "row" bigint, "at" bigint)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 5 AS $$
SELECT s.n, s.flags, (coalesce(s.partner, 0) + 65536 * coalesce(s.partner_hi, 0)::bigint)::integer,
       coalesce(s.bytes, 0) + 65536 * coalesce(s.bytes_hi, 0)::bigint,
       (coalesce(s.tag, 0) + 65536 * coalesce(s.tag_hi, 0)::bigint)::integer,
       (coalesce(s.step, 0) + 65536 * coalesce(s.step_hi, 0)::bigint)::integer,
       coalesce(s."row", 0) + 65536 * coalesce(s.row_hi, 0)::bigint, coalesce(s."at", 0) + 65536 * coalesce(s.at_hi, 0)::bigint
FROM unnest(
    b.message_flags[coalesce(b.message_end[slot], 0) + 1 : b.message_end[slot + 1]],
    b.message_partner[coalesce(b.message_end[slot], 0) + 1 : b.message_end[slot + 1]],
    b.message_partner_hi[coalesce(b.message_end[slot], 0) + 1 : b.message_end[slot + 1]],
    b.message_bytes[coalesce(b.message_end[slot], 0) + 1 : b.message_end[slot + 1]],
    b.message_bytes_hi[coalesce(b.message_end[slot], 0) + 1 : b.message_end[slot + 1]],
    b.message_tag[coalesce(b.message_end[slot], 0) + 1 : b.message_end[slot + 1]],
    b.message_tag_hi[coalesce(b.message_end[slot], 0) + 1 : b.message_end[slot + 1]],
    b.message_step[coalesce(b.message_end[slot], 0) + 1 : b.message_end[slot + 1]],
    b.message_step_hi[coalesce(b.message_end[slot], 0) + 1 : b.message_end[slot + 1]],
    b.message_row[coalesce(b.message_end[slot], 0) + 1 : b.message_end[slot + 1]],
    b.message_row_hi[coalesce(b.message_end[slot], 0) + 1 : b.message_end[slot + 1]],
    b.message_at[coalesce(b.message_end[slot], 0) + 1 : b.message_end[slot + 1]],
    b.message_at_hi[coalesce(b.message_end[slot], 0) + 1 : b.message_end[slot + 1]]
    ) WITH ORDINALITY AS s(flags, partner, partner_hi, bytes, bytes_hi, tag, tag_hi, step, step_hi, "row", row_hi, "at", at_hi, n)
$$;

CREATE FUNCTION block_counters(b blocks, slot smallint)
RETURNS TABLE ("position" bigint, idx bigint, "at" bigint, name text, "value" bigint)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 5 AS $$
SELECT s.n, coalesce(s.idx, 0) + 65536 * coalesce(s.idx_hi, 0)::bigint, coalesce(s."at", 0) + 65536 * coalesce(s.at_hi, 0)::bigint,
       s.name, s."value"
FROM unnest(
    b.counter_idx[coalesce(b.counter_end[slot], 0) + 1 : b.counter_end[slot + 1]],
    b.counter_idx_hi[coalesce(b.counter_end[slot], 0) + 1 : b.counter_end[slot + 1]],
    b.counter_at[coalesce(b.counter_end[slot], 0) + 1 : b.counter_end[slot + 1]],
    b.counter_at_hi[coalesce(b.counter_end[slot], 0) + 1 : b.counter_end[slot + 1]],
    b.counter_name[coalesce(b.counter_end[slot], 0) + 1 : b.counter_end[slot + 1]],
    b.counter_value[coalesce(b.counter_end[slot], 0) + 1 : b.counter_end[slot + 1]]
    ) WITH ORDINALITY AS s(idx, idx_hi, "at", at_hi, name, "value", n)
$$;
