-- What schema 3 lacks, for a file that can only be read: nothing is known of the calls
-- of call paths.

CREATE VIEW path_profiles AS
SELECT NULL::INTEGER AS run, NULL::INTEGER AS pid, NULL::INTEGER AS path, NULL::INTEGER AS parent, NULL::INTEGER AS fn, NULL::BIGINT AS calls,
       NULL::BIGINT AS exclusive_us
WHERE false;
