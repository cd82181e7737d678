-- A worker that leaves, or is cleared after it died, spends the leases that it claimed and never took. A request that it sent just before
-- its death may arrive later than any pause that others make: it would take a lease that nobody knows and nobody releases.
CREATE TABLE quipu.spent_claim (
  project uuid NOT NULL,
  lease text NOT NULL,
  at_us bigint NOT NULL,
  PRIMARY KEY (project, lease)
);
REVOKE ALL ON quipu.spent_claim FROM PUBLIC;

-- Removes a worker, unless it still holds a lease that it claimed: that has to be released first. Commits wait for it, so a claimed lease
-- has been taken by now or never will be. Another login may clear a worker that has been silent for ten seconds.
CREATE OR REPLACE FUNCTION quipu.leave(p_project uuid, p_name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  w quipu.worker;
  claimed text[];
  spent_us bigint;
BEGIN
  PERFORM FROM quipu.project p WHERE p.id = p_project FOR UPDATE;
  spent_us := quipu.now_us();
  SELECT * INTO w FROM quipu.worker x WHERE x.project = p_project AND x.name = p_name
    AND (x.by_role = session_user OR x.seen_us < spent_us - 10000000);
  IF NOT FOUND THEN RETURN; END IF;
  IF json_typeof(w.says->'claims') = 'array' THEN
    claimed := ARRAY(SELECT c->>'lease' FROM json_array_elements(w.says->'claims') c WHERE c->>'lease' IS NOT NULL);
  END IF;
  INSERT INTO quipu.spent_claim SELECT p_project, c, spent_us FROM unnest(claimed) c
    WHERE NOT EXISTS (SELECT FROM quipu.lease l WHERE l.project = p_project AND l.id = c) ON CONFLICT DO NOTHING;
  -- No request is under way for a day.
  DELETE FROM quipu.spent_claim s WHERE s.project = p_project AND s.at_us < spent_us - 86400000000;
  DELETE FROM quipu.worker x WHERE x.project = p_project AND x.name = p_name
    AND NOT EXISTS (SELECT FROM quipu.lease l WHERE l.project = p_project AND l.id = ANY (claimed));
END $$;

DO $migrate$
DECLARE
  made text := pg_get_functiondef('quipu.lease_event(uuid,json,bigint,bigint)'::regprocedure);
  known text := 'IF EXISTS (SELECT FROM quipu.lease l WHERE l.project = p_project AND l.id = w_id) THEN';
  spent text := 'IF EXISTS (SELECT FROM quipu.spent_claim s WHERE s.project = p_project AND s.lease = w_id) THEN
        why := format(''the worker that claimed lease `%s` is considered dead'', w_id);
        CONTINUE;
      END IF;
      ';
BEGIN
  IF position(known IN made) = 0 THEN
    RAISE EXCEPTION 'quipu.lease_event is not the function of schema 1';
  END IF;
  EXECUTE replace(made, known, spent || known);
END $migrate$;
