-- The same rules as in schema 1 with less work for each commit, and a channel for each project.
--
-- What was slow, by measurement: functions in SQL are planned anew at every call, those with a setting of their own pay for it at
-- every call, `json` is parsed again for every field, and a copy was sent back the bytes that it had just sent. So what is called
-- inside of others is PL/pgSQL without settings (the caller has set the path), a body is parsed once, and a copy's own records come back
-- without their bodies.

-- Written by one function, in one transaction, under the project's lock: what these would compare again cannot be otherwise, and
-- comparing writes to the row that is referred to. `quipu doctor` looks at the whole log.
ALTER TABLE quipu.op DROP CONSTRAINT op_project_rev_fkey;
ALTER TABLE quipu.log DROP CONSTRAINT log_project_fkey;

-- A literal path is compared, only a pattern becomes a regular expression.
CREATE FUNCTION quipu.covers(pattern text, path text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN pattern ~ '[*?]' THEN path ~ quipu.regex(pattern) ELSE pattern = path END
$$;

CREATE OR REPLACE FUNCTION quipu.overlaps(a text, b text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN a !~ '[*?]' THEN CASE WHEN b !~ '[*?]' THEN a = b ELSE a ~ quipu.regex(b) END
    WHEN b !~ '[*?]' THEN b ~ quipu.regex(a)
    ELSE starts_with(rtrim(regexp_replace(a, '[*?].*$', ''), '/'), rtrim(regexp_replace(b, '[*?].*$', ''), '/'))
      OR starts_with(rtrim(regexp_replace(b, '[*?].*$', ''), '/'), rtrim(regexp_replace(a, '[*?].*$', ''), '/'))
  END
$$;

DROP FUNCTION quipu.rows_after(uuid, bigint);

-- The records behind a revision up to another, in order: at most 500 or about 8 MB. Lengths first: they are known without the bytes.
CREATE FUNCTION quipu.rows_between(p_project uuid, p_rev bigint, p_newest bigint) RETURNS SETOF quipu.answer LANGUAGE plpgsql AS $$
DECLARE
  r record;
  total bigint := 0;
  upto bigint := p_rev;
BEGIN
  FOR r IN SELECT l.rev, octet_length(l.body) AS body, (SELECT sum(octet_length(coalesce(o.bytes,
        (SELECT b.bytes FROM quipu.body b WHERE b.hash = o.hash)))) FROM quipu.op o WHERE o.project = p_project AND o.rev = l.rev) AS bytes
      FROM quipu.log l WHERE l.project = p_project AND l.rev > p_rev AND l.rev <= p_newest ORDER BY l.rev LIMIT 500 LOOP
    upto := r.rev;
    total := total + r.body + coalesce(r.bytes, 0);
    EXIT WHEN total > 8000000;
  END LOOP;
  RETURN QUERY SELECT NULL::text, NULL::text, NULL::bigint, NULL::bigint, l.rev, l.id::text, l.at_us, l.body, l.lease::text,
      ARRAY(SELECT coalesce(o.bytes, (SELECT b.bytes FROM quipu.body b WHERE b.hash = o.hash)) FROM quipu.op o
        WHERE o.project = p_project AND o.rev = l.rev ORDER BY o.place)
    FROM quipu.log l WHERE l.project = p_project AND l.rev > p_rev AND l.rev <= upto ORDER BY l.rev;
END $$;

DROP FUNCTION quipu.follows(uuid, bigint, text);

CREATE OR REPLACE FUNCTION quipu.after(p_project uuid, p_rev bigint, p_id text) RETURNS SETOF quipu.answer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
DECLARE
  a quipu.answer;
BEGIN
  SELECT p.rev INTO a.newest FROM quipu.project p WHERE p.id = p_project;
  IF NOT FOUND THEN
    a.now_us := quipu.now_us(); a.verdict := 'refused'; a.what := 'there is no such project here';
    RETURN NEXT a; RETURN;
  END IF;
  a.now_us := quipu.now_us();
  IF p_rev > 0 AND NOT EXISTS (SELECT FROM quipu.log l WHERE l.project = p_project AND l.rev = p_rev AND l.id = p_id::uuid) THEN
    a.verdict := 'diverged'; RETURN NEXT a; RETURN;
  END IF;
  a.verdict := 'accepted';
  RETURN NEXT a;
  IF a.newest > p_rev THEN
    RETURN QUERY SELECT * FROM quipu.rows_between(p_project, p_rev, a.newest);
  END IF;
END $$;

CREATE OR REPLACE FUNCTION quipu.head_rev(p_project uuid) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN (SELECT p.rev FROM quipu.project p WHERE p.id = p_project);
END $$;

-- Wakes those who wait for this project, and tells them its newest revision. Called by itself, never inside a commit: until its
-- transaction ends it holds a lock that is one for the whole database. So that transaction waits for no disk.
CREATE OR REPLACE FUNCTION quipu.tell(p_project uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM pg_notify('quipu ' || p_project, (SELECT p.rev::text FROM quipu.project p WHERE p.id = p_project));
END $$;

CREATE OR REPLACE FUNCTION quipu.beat(p_project uuid, p_name text, p_says text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
BEGIN
  INSERT INTO quipu.worker VALUES (p_project, p_name, quipu.now_us(), p_says::json, session_user)
    ON CONFLICT (project, name) DO UPDATE SET seen_us = excluded.seen_us, says = excluded.says, by_role = excluded.by_role
    WHERE quipu.worker.by_role = session_user;
END $$;

DROP FUNCTION quipu.check_op(uuid, text, json, text, bigint, jsonb);

-- Whether one operation may be: nothing is said if it may.
CREATE FUNCTION quipu.check_op(p_project uuid, p_kind text, p_op jsonb, p_token text, p_now bigint, p_before jsonb, OUT verdict text, OUT what text)
LANGUAGE plpgsql AS $$
DECLARE
  h quipu.head;
  held text;
  there boolean;
  named text := p_op->>'path';
  act text := p_op->>'op';
BEGIN
  IF named IS NULL OR named = '' OR named ~ '(^|/)(\.{1,2})?(/|$)' OR named ~ '^\.(quipu|git)(/|$)' OR length(named) > 4096
     OR act IS NULL OR act NOT IN ('write', 'append', 'remove', 'keep')
     OR p_op->>'version' IS NULL OR p_op->>'class' IS NULL OR coalesce((p_op->>'len')::bigint, -1) < 0 THEN
    verdict := 'refused'; what := format('`%s` is no operation on a memory file', coalesce(named, '?')); RETURN;
  END IF;
  IF act = 'keep' THEN RETURN; END IF;
  SELECT l.id INTO held FROM quipu.lease l
    WHERE l.project = p_project AND l.until_us > p_now AND l.id IS DISTINCT FROM p_token
      AND (named = ANY (l.paths) OR EXISTS (SELECT FROM unnest(l.paths) a WHERE quipu.covers(a, named))) LIMIT 1;
  IF FOUND THEN
    verdict := 'held'; what := format('`%s` is leased by another (lease %s)', named, held); RETURN;
  END IF;
  IF p_before IS NULL THEN
    SELECT * INTO h FROM quipu.head x WHERE x.project = p_project AND x.path = named;
    there := FOUND AND NOT h.gone;
  ELSE
    h.class := p_before->>'class'; h.version := p_before->>'version';
    there := p_before->>'op' <> 'remove';
  END IF;
  IF (there AND h.version IS DISTINCT FROM p_op->>'base') OR (NOT there AND p_op->>'base' IS NOT NULL) THEN
    verdict := 'stale'; what := named; RETURN;
  END IF;
  IF act = 'append' AND NOT there THEN
    verdict := 'refused'; what := format('`%s` is not there, so nothing can be added to it', named); RETURN;
  END IF;
  IF quipu.keeps() THEN RETURN; END IF;
  -- From here on: what the role of a worker may not do, whatever its program says.
  IF named = 'quipu.toml' OR named ~ '(^|/)profile\.toml$' OR EXISTS (SELECT FROM quipu.head x
       WHERE x.project = p_project AND x.path ~ '(^|/)profile\.toml$' AND NOT x.gone AND x.path <> 'profile.toml'
         AND starts_with(named, left(x.path, -12))) THEN
    verdict := 'refused'; what := format('`%s` is the contract: this database role may not change it', named); RETURN;
  END IF;
  IF p_kind = 'amend' THEN
    verdict := 'refused'; what := format('`%s`: this database role may not amend', named); RETURN;
  END IF;
  IF there AND h.class IN ('append', 'sealed', 'record') THEN
    IF h.class <> p_op->>'class' THEN
      verdict := 'refused'; what := format('`%s` is %s in the log and %s here: a person has to bring them together', named, h.class, p_op->>'class'); RETURN;
    END IF;
    IF h.class <> 'append' OR act <> 'append' THEN
      verdict := 'refused'; what := format('`%s` is %s: this database role may not rewrite it', named, h.class); RETURN;
    END IF;
  END IF;
END $$;

DROP FUNCTION quipu.write_down(uuid, bigint, uuid, bigint, text, json, bytea[], int);

-- Carries one record into the log and what is derived from it. Returns how many of the bytes are used up.
CREATE FUNCTION quipu.write_down(p_project uuid, p_rev bigint, p_id uuid, p_at bigint, p_body text, p_parsed jsonb, p_lease json, p_bytes bytea[], p_from int)
RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  ops jsonb := coalesce(p_parsed->'ops', '[]');
  op jsonb;
  act text;
  b bytea;
  h bytea;
BEGIN
  INSERT INTO quipu.log (project, rev, id, at_us, body, lease) VALUES (p_project, p_rev, p_id, p_at, p_body, p_lease);
  FOR n IN 1 .. jsonb_array_length(ops) LOOP
    op := ops->(n - 1);
    act := op->>'op';
    b := p_bytes[p_from + n];
    h := NULL;
    IF octet_length(b) > 8192 THEN
      h := sha256(b);
      INSERT INTO quipu.body VALUES (h, b) ON CONFLICT DO NOTHING;
      b := NULL;
    END IF;
    INSERT INTO quipu.op VALUES (p_project, p_rev, n, b, h);
    IF act <> 'keep' THEN
      INSERT INTO quipu.head VALUES (p_project, op->>'path', op->>'class', op->>'version', act = 'remove', p_rev)
        ON CONFLICT (project, path) DO UPDATE SET class = excluded.class, version = excluded.version, gone = excluded.gone, rev = excluded.rev;
    END IF;
  END LOOP;
  IF p_parsed->>'key' IS NOT NULL THEN
    INSERT INTO quipu.key VALUES (p_project, p_parsed->>'key', p_rev) ON CONFLICT DO NOTHING;
  END IF;
  RETURN p_from + jsonb_array_length(ops);
END $$;

-- The only way for a commit: everything is checked and written in one transaction, in one call.
--   p_rev, p_id    the end of the working copy that judged it
--   p_ids          ids made by the client: the same again is the first again
--   p_bodies       the records as JSON, without bytes, number, time and lease
--   p_leases       what each does to a lease, or null
--   p_bytes        the bytes of all operations, one after another
--   p_token, p_fence  the lease that is shown
--   p_relies       {path: version}: what the judge relied on
CREATE OR REPLACE FUNCTION quipu.commit(p_project uuid, p_rev bigint, p_id text, p_ids text[], p_bodies text[], p_leases text[], p_bytes bytea[],
  p_token text, p_fence bigint, p_relies text)
RETURNS SETOF quipu.answer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
DECLARE
  a quipu.answer;
  p quipu.project;
  held quipu.lease;
  now_us bigint;
  before_rev bigint;
  parsed jsonb;
  bodies jsonb[] := '{}';
  ops jsonb;
  op jsonb;
  act text;
  checked record;
  before jsonb := '{}';
  event text;
  event_of int;
  happened json;
  place int := 0;
BEGIN
  -- First of all the project's row: whoever comes later waits here, and sees what was done before.
  SELECT * INTO p FROM quipu.project x WHERE x.id = p_project FOR UPDATE;
  IF NOT FOUND THEN
    a.now_us := quipu.now_us(); a.verdict := 'refused'; a.what := 'there is no such project here'; RETURN NEXT a; RETURN;
  END IF;
  a.now_us := quipu.now_us();
  now_us := a.now_us;
  before_rev := p.rev;
  a.newest := p.rev;
  IF p_rev > p.rev OR p_rev > 0 AND NOT EXISTS (SELECT FROM quipu.log l WHERE l.project = p_project AND l.rev = p_rev AND l.id = p_id::uuid) THEN
    a.verdict := 'diverged'; RETURN NEXT a; RETURN;
  END IF;
  a.verdict := 'accepted';
  IF EXISTS (SELECT FROM quipu.log l WHERE l.project = p_project AND l.id = p_ids[1]::uuid) THEN
    RETURN NEXT a;
    RETURN QUERY SELECT * FROM quipu.rows_between(p_project, p_rev, p.rev);
    RETURN;
  END IF;

  <<checks>>
  BEGIN
    SELECT r.key INTO a.what FROM jsonb_each_text(coalesce(p_relies, '{}')::jsonb) r
      JOIN quipu.head x ON x.project = p_project AND x.path = r.key AND NOT x.gone AND x.version IS DISTINCT FROM r.value LIMIT 1;
    IF a.what IS NOT NULL THEN
      a.verdict := 'stale'; EXIT checks;
    END IF;
    IF p_token IS NOT NULL THEN
      SELECT * INTO held FROM quipu.lease l WHERE l.project = p_project AND l.id = p_token AND l.fence = p_fence AND l.until_us > now_us;
      IF NOT FOUND THEN
        a.verdict := 'held'; a.what := format('lease `%s:%s` is over: it ended, was released, or has another number', p_token, p_fence); EXIT checks;
      END IF;
      IF held.by_role <> session_user AND NOT quipu.keeps() THEN
        a.verdict := 'held'; a.what := format('lease `%s` was taken by the database role %s', p_token, held.by_role); EXIT checks;
      END IF;
    END IF;
    FOR i IN 1 .. cardinality(p_bodies) LOOP
      parsed := p_bodies[i]::jsonb;
      bodies := bodies || parsed;
      ops := coalesce(parsed->'ops', '[]');
      IF coalesce((parsed->>'v')::int, 0) <> 1 OR parsed->>'kind' IS NULL OR jsonb_typeof(parsed->'who') IS DISTINCT FROM 'object'
         OR jsonb_typeof(ops) <> 'array' OR parsed->'lease' IS NOT NULL THEN
        a.verdict := 'refused'; a.what := 'this is no record of a format that this store knows'; EXIT checks;
      END IF;
      IF parsed->>'key' IS NOT NULL AND EXISTS (SELECT FROM quipu.key k WHERE k.project = p_project AND k.key = parsed->>'key') THEN
        a.verdict := 'stale'; a.what := format('key `%s`', parsed->>'key'); EXIT checks;
      END IF;
      FOR n IN 1 .. jsonb_array_length(ops) LOOP
        op := ops->(n - 1);
        checked := quipu.check_op(p_project, parsed->>'kind', op, p_token, now_us, before->(op->>'path'));
        IF checked.verdict IS NOT NULL THEN
          a.verdict := checked.verdict; a.what := checked.what; EXIT checks;
        END IF;
        place := place + 1;
        act := op->>'op';
        IF act <> 'remove' AND (p_bytes[place] IS NULL OR act <> 'append' AND octet_length(p_bytes[place]) <> (op->>'len')::bigint) THEN
          a.verdict := 'refused'; a.what := format('the bytes of `%s` are not there, or not as many as it says', op->>'path'); EXIT checks;
        END IF;
        -- A later operation of this commit is judged behind this one.
        IF act <> 'keep' THEN
          before := before || jsonb_build_object(op->>'path', op - 'base' - 'len');
        END IF;
      END LOOP;
      IF p_leases[i] IS NOT NULL THEN
        IF event IS NOT NULL THEN
          a.verdict := 'refused'; a.what := 'one commit does one thing to one lease'; EXIT checks;
        END IF;
        event := p_leases[i]; event_of := i;
      END IF;
    END LOOP;
    IF event IS NOT NULL THEN
      SELECT e.p_fence, e.happened, e.why INTO checked FROM quipu.lease_event(p_project, event::json, now_us, p.fence) e;
      IF checked.happened IS NULL THEN
        a.verdict := 'held'; a.what := checked.why; EXIT checks;
      END IF;
      p.fence := checked.p_fence; happened := checked.happened;
    END IF;
  END checks;

  IF a.verdict = 'accepted' THEN
    p.at_us := greatest(now_us, p.at_us);
    place := 0;
    FOR i IN 1 .. cardinality(p_bodies) LOOP
      p.rev := p.rev + 1;
      place := quipu.write_down(p_project, p.rev, p_ids[i]::uuid, p.at_us, p_bodies[i], bodies[i], CASE WHEN i = event_of THEN happened END, p_bytes, place);
    END LOOP;
    UPDATE quipu.project x SET rev = p.rev, fence = p.fence, at_us = p.at_us WHERE x.id = p_project;
    a.newest := p.rev;
  END IF;
  RETURN NEXT a;
  -- What the working copy does not have, so that it need not ask again.
  IF before_rev > p_rev THEN
    FOR a IN SELECT * FROM quipu.rows_between(p_project, p_rev, before_rev) LOOP
      p_rev := a.rev;
      RETURN NEXT a;
    END LOOP;
  END IF;
  -- Its own last, without what it has: unless there is more before them than goes into one answer.
  IF p_rev = before_rev THEN
    FOR i IN 1 .. p.rev - before_rev LOOP
      a := NULL;
      a.rev := before_rev + i; a.id := p_ids[i]; a.at_us := p.at_us; a.lease := CASE WHEN i = event_of THEN happened END;
      RETURN NEXT a;
    END LOOP;
  END IF;
END $$;

CREATE OR REPLACE FUNCTION quipu.load(p_project uuid, p_rev bigint, p_ids text[], p_at_us bigint[], p_bodies text[], p_leases text[], p_bytes bytea[])
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
DECLARE
  p quipu.project;
  lease json;
  place int := 0;
BEGIN
  IF NOT quipu.keeps() THEN
    RAISE EXCEPTION 'the database role % may not fill projects', session_user USING ERRCODE = 'insufficient_privilege';
  END IF;
  SELECT * INTO p FROM quipu.project x WHERE x.id = p_project FOR UPDATE;
  IF NOT FOUND OR p.rev <> p_rev THEN
    RETURN p.rev;
  END IF;
  FOR i IN 1 .. cardinality(p_bodies) LOOP
    p.rev := p.rev + 1;
    p.at_us := greatest(p.at_us, p_at_us[i]);
    lease := p_leases[i]::json;
    place := quipu.write_down(p_project, p.rev, p_ids[i]::uuid, p_at_us[i], p_bodies[i], p_bodies[i]::jsonb, lease, p_bytes, place);
    IF lease IS NOT NULL THEN
      p.fence := greatest(p.fence, (lease->>'fence')::bigint);
      DELETE FROM quipu.lease l WHERE l.project = p_project AND l.id = lease->>'id';
      IF lease->>'act' <> 'release' THEN
        INSERT INTO quipu.lease VALUES (p_project, lease->>'id', ARRAY(SELECT json_array_elements_text(lease->'paths')),
          (lease->>'fence')::bigint, (lease->>'until_us')::bigint, session_user);
      END IF;
    END IF;
  END LOOP;
  UPDATE quipu.project x SET rev = p.rev, fence = p.fence, at_us = p.at_us WHERE x.id = p_project;
  RETURN p.rev;
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA quipu FROM PUBLIC;
