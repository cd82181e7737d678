-- The log as hashes, so that a working copy can compare its journal with it; and a clock that was wrong once no longer holds back
-- the times of all later records.

-- The records behind a revision without their bytes: at most 500, or about 4 MB of JSON. `hashes` has the SHA-256 of the bytes of each
-- operation, null where it has none.
CREATE FUNCTION quipu.entries(p_project uuid, p_rev bigint, OUT rev bigint, OUT id text, OUT at_us bigint, OUT body text, OUT lease text,
  OUT hashes bytea[]) RETURNS SETOF record
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT l.rev, l.id::text, l.at_us, l.body, l.lease::text,
      ARRAY(SELECT coalesce(o.hash, sha256(o.bytes)) FROM quipu.op o WHERE o.project = p_project AND o.rev = l.rev ORDER BY o.place)
    FROM (SELECT x.*, sum(octet_length(x.body)) OVER (ORDER BY x.rev) - octet_length(x.body) AS before FROM
        (SELECT * FROM quipu.log y WHERE y.project = p_project AND y.rev > p_rev ORDER BY y.rev LIMIT 500) x) l
    WHERE l.before < 4000000 ORDER BY l.rev
$$;

REVOKE ALL ON FUNCTION quipu.entries(uuid, bigint) FROM PUBLIC;

DO $migrate$
DECLARE
  made text := pg_get_functiondef('quipu.commit(uuid,bigint,text,text[],text[],text[],bytea[],text,bigint,text)'::regprocedure);
  time_before text := 'p.at_us := greatest(now_us, p.at_us);';
  time_now text := 'p.at_us := CASE WHEN p.at_us - now_us > 60000000 THEN now_us ELSE greatest(now_us, p.at_us) END;';
BEGIN
  IF position(time_before IN made) = 0 THEN
    RAISE EXCEPTION 'quipu.commit is not the function of schema 4';
  END IF;
  EXECUTE replace(made, time_before, time_now);
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'quipu_worker') AND has_schema_privilege('quipu_worker', 'quipu', 'USAGE') THEN
    GRANT EXECUTE ON FUNCTION quipu.entries(uuid, bigint) TO quipu_worker;
  END IF;
END $migrate$;
