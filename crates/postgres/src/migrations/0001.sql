-- The shared log of projects, and the only ways into it.
--
-- Tables belong to whoever ran this. Everyone else gets EXECUTE on functions and nothing on tables (see
-- roles.sql): so that what is written stays written, whatever SQL a worker sends. A function runs with its
-- owner's rights (SECURITY DEFINER); `session_user` is still who logged in.

CREATE SCHEMA quipu;

CREATE TABLE quipu.migration (
  version int PRIMARY KEY,
  applied timestamptz NOT NULL DEFAULT now(),
  by_role name NOT NULL DEFAULT session_user
);

CREATE TABLE quipu.project (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  name text NOT NULL UNIQUE,
  rev bigint NOT NULL DEFAULT 0,       -- the newest revision: 1, 2, 3 ... without a gap
  fence bigint NOT NULL DEFAULT 0,     -- the highest fencing number ever given
  at_us bigint NOT NULL DEFAULT 0      -- the newest record's time
) WITH (fillfactor = 50);

-- What happened: one row a record. `body` is JSON without the bytes of files; they are in quipu.op.
CREATE TABLE quipu.log (
  project uuid NOT NULL REFERENCES quipu.project (id),
  rev bigint NOT NULL,
  id uuid NOT NULL,
  at_us bigint NOT NULL,
  body text NOT NULL,
  lease json,
  by_role name NOT NULL DEFAULT session_user,
  PRIMARY KEY (project, rev),
  UNIQUE (project, id)
);

-- Large bytes, once, whoever wrote them how often.
CREATE TABLE quipu.body (
  hash bytea PRIMARY KEY,
  bytes bytea NOT NULL
);

CREATE TABLE quipu.op (
  project uuid NOT NULL,
  rev bigint NOT NULL,
  place int NOT NULL,
  bytes bytea,
  hash bytea REFERENCES quipu.body (hash),
  PRIMARY KEY (project, rev, place),
  FOREIGN KEY (project, rev) REFERENCES quipu.log (project, rev)
);

-- Derived from the log: the newest version of each file, keys, leases that were not released.
CREATE TABLE quipu.head (
  project uuid NOT NULL,
  path text NOT NULL,
  class text NOT NULL,
  version text NOT NULL,
  gone boolean NOT NULL,
  rev bigint NOT NULL,
  PRIMARY KEY (project, path)
) WITH (fillfactor = 70);

-- Profiles that a project keeps itself: everything beside such a file is part of the contract.
CREATE INDEX head_profiles ON quipu.head (project, path) WHERE path ~ '(^|/)profile\.toml$';

CREATE TABLE quipu.key (
  project uuid NOT NULL,
  key text NOT NULL,
  rev bigint NOT NULL,
  PRIMARY KEY (project, key)
);

CREATE TABLE quipu.lease (
  project uuid NOT NULL,
  id text NOT NULL,
  paths text[] NOT NULL,
  fence bigint NOT NULL,
  until_us bigint NOT NULL,
  by_role name NOT NULL,
  PRIMARY KEY (project, id)
) WITH (fillfactor = 70);

-- Who is at work, told by the workers themselves. Its only weight: what a worker claimed that fell silent, others may release.
CREATE TABLE quipu.worker (
  project uuid NOT NULL,
  name text NOT NULL,
  seen_us bigint NOT NULL,
  says json NOT NULL,
  by_role name NOT NULL DEFAULT session_user,
  PRIMARY KEY (project, name)
);

-- Whoever may call this may do what only a person may: amend, replace what is sealed, change the contract,
-- found and fill projects, end the leases of others. The right is the EXECUTE right on this function.
CREATE FUNCTION quipu.keep() RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;

CREATE FUNCTION quipu.keeps() RETURNS boolean LANGUAGE sql STABLE
  AS $$ SELECT has_function_privilege(session_user, 'quipu.keep()', 'EXECUTE') $$;

CREATE FUNCTION quipu.now_us() RETURNS bigint LANGUAGE sql VOLATILE
  AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

-- A path pattern as a regular expression. `**` may cross folders, `*` and `?` may not.
CREATE FUNCTION quipu.regex(pattern text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT '^' || replace(replace(replace(replace(replace(replace(
      regexp_replace(replace(replace(replace(replace(replace(replace(pattern,
        '/**/', E'\x01'), '/**', E'\x02'), '**/', E'\x03'), '**', E'\x04'), '*', E'\x05'), '?', E'\x06'),
        '([]\\^$+(){}|.[-])', '\\\1', 'g'),
      E'\x01', '/(.*/)?'), E'\x02', '(/.*)?'), E'\x03', '(.*/)?'), E'\x04', '.*'), E'\x05', '[^/]*'), E'\x06', '[^/]') || '$'
$$;

-- Whether two patterns may name the same path. Two with wildcards are taken to do so if one begins like the other.
CREATE FUNCTION quipu.overlaps(a text, b text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN a !~ '[*?]' THEN a ~ quipu.regex(b)
    WHEN b !~ '[*?]' THEN b ~ quipu.regex(a)
    ELSE starts_with(rtrim(regexp_replace(a, '[*?].*$', ''), '/'), rtrim(regexp_replace(b, '[*?].*$', ''), '/'))
      OR starts_with(rtrim(regexp_replace(b, '[*?].*$', ''), '/'), rtrim(regexp_replace(a, '[*?].*$', ''), '/'))
  END
$$;

CREATE TYPE quipu.answer AS (
  verdict text,        -- of the first row only: accepted, stale, held, refused, diverged
  what text,
  newest bigint,
  now_us bigint,
  rev bigint,          -- of the other rows: one record each
  id text,
  at_us bigint,
  body text,
  lease text,
  bytes bytea[]
);

-- The records behind a revision, in order: at most 500 or about 8 MB.
CREATE FUNCTION quipu.rows_after(p_project uuid, p_rev bigint) RETURNS SETOF quipu.answer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  l quipu.log;
  a quipu.answer;
  total bigint := 0;
BEGIN
  FOR l IN SELECT * FROM quipu.log WHERE project = p_project AND log.rev > p_rev ORDER BY log.rev LIMIT 500 LOOP
    a := NULL;
    a.rev := l.rev; a.id := l.id::text; a.at_us := l.at_us; a.body := l.body; a.lease := l.lease::text;
    SELECT array_agg(coalesce(o.bytes, b.bytes) ORDER BY o.place) INTO a.bytes
      FROM quipu.op o LEFT JOIN quipu.body b ON b.hash = o.hash WHERE o.project = p_project AND o.rev = l.rev;
    total := total + octet_length(l.body) + coalesce((SELECT sum(octet_length(x)) FROM unnest(a.bytes) x), 0);
    RETURN NEXT a;
    EXIT WHEN total > 8000000;
  END LOOP;
END $$;

-- Whether a working copy that ends at this record follows this log at all.
CREATE FUNCTION quipu.follows(p_project uuid, p_rev bigint, p_id text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT p_rev = 0 OR EXISTS (SELECT FROM quipu.log l WHERE l.project = p_project AND l.rev = p_rev AND l.id = p_id::uuid)
$$;

-- The change feed: what is behind a mark.
CREATE FUNCTION quipu.after(p_project uuid, p_rev bigint, p_id text) RETURNS SETOF quipu.answer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  a quipu.answer;
BEGIN
  SELECT p.rev INTO a.newest FROM quipu.project p WHERE p.id = p_project;
  a.now_us := quipu.now_us();
  IF NOT FOUND THEN
    a.verdict := 'refused'; a.what := 'there is no such project here';
    RETURN NEXT a; RETURN;
  END IF;
  IF NOT quipu.follows(p_project, p_rev, p_id) THEN
    a.verdict := 'diverged'; RETURN NEXT a; RETURN;
  END IF;
  a.verdict := 'accepted';
  RETURN NEXT a;
  RETURN QUERY SELECT * FROM quipu.rows_after(p_project, p_rev);
END $$;

-- The same for a writer that was overtaken too often: inside its transaction nobody else commits.
CREATE FUNCTION quipu.turn(p_project uuid, p_rev bigint, p_id text) RETURNS SETOF quipu.answer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM FROM quipu.project p WHERE p.id = p_project FOR UPDATE;
  RETURN QUERY SELECT * FROM quipu.after(p_project, p_rev, p_id);
END $$;

CREATE FUNCTION quipu.head_rev(p_project uuid) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT rev FROM quipu.project WHERE id = p_project
$$;

-- Wakes those who wait. Called by itself, never inside a commit: its lock is one for the whole database.
CREATE FUNCTION quipu.tell(p_project uuid) RETURNS void LANGUAGE sql
  AS $$ SELECT pg_notify('quipu', p_project::text) $$;

-- Whether a lease was left behind: its own login said who works on it, and that worker has been silent for ten seconds.
CREATE FUNCTION quipu.is_left(p_project uuid, p_lease quipu.lease, p_now bigint) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(max(w.seen_us) < p_now - 10000000, false) FROM quipu.worker w
    WHERE w.project = p_project AND w.by_role = p_lease.by_role AND json_typeof(w.says->'claims') = 'array'
      AND EXISTS (SELECT FROM json_array_elements(w.says->'claims') c WHERE c->>'lease' = p_lease.id)
$$;

-- One lease event. `happened` is what goes into the log; if it may not be, nothing is written and `why` says so.
CREATE FUNCTION quipu.lease_event(p_project uuid, p_want json, p_now bigint, INOUT p_fence bigint, OUT happened json, OUT why text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  act text := p_want->>'act';
  wish json;
  held quipu.lease;
  w_id text; w_paths text[];
  ends_us bigint := p_now + least(greatest(coalesce((p_want->>'length_us')::bigint, 0), 0), 86400000000);
BEGIN
  IF act = 'take' THEN
    FOR wish IN SELECT * FROM json_array_elements(p_want->'wishes') LOOP
      w_id := wish->>'id';
      w_paths := ARRAY(SELECT json_array_elements_text(wish->'paths'));
      why := NULL;
      IF NOT quipu.keeps() AND EXISTS (SELECT FROM unnest(w_paths) x WHERE x ~ '[*?]') THEN
        why := 'this database role leases paths one by one, without wildcards';
        CONTINUE;
      END IF;
      IF EXISTS (SELECT FROM quipu.lease l WHERE l.project = p_project AND l.id = w_id) THEN
        why := format('the name `%s` is taken', w_id);
        CONTINUE;
      END IF;
      SELECT l.* INTO held FROM quipu.lease l
        WHERE l.project = p_project AND l.until_us > p_now
          AND EXISTS (SELECT FROM unnest(l.paths) a, unnest(w_paths) b WHERE quipu.overlaps(a, b)) LIMIT 1;
      IF FOUND THEN
        why := format('%s is leased by another (lease %s)', array_to_string(held.paths, ', '), held.id);
        CONTINUE;
      END IF;
      IF cardinality(w_paths) > 0 THEN p_fence := p_fence + 1; END IF;
      DELETE FROM quipu.lease l WHERE l.project = p_project AND l.until_us <= p_now AND cardinality(l.paths) > 0;
      INSERT INTO quipu.lease VALUES (p_project, w_id, w_paths, p_fence, ends_us, session_user);
      happened := json_build_object('act', act, 'id', w_id, 'paths', to_json(w_paths), 'fence', p_fence, 'until_us', ends_us);
      RETURN;
    END LOOP;
    RETURN;
  END IF;
  wish := p_want->'wishes'->0;
  w_id := wish->>'id';
  SELECT l.* INTO held FROM quipu.lease l WHERE l.project = p_project AND l.id = w_id;
  IF NOT FOUND THEN
    -- A session may have been ended by whoever took over its work; a lease that is gone is gone.
    IF act = 'release' AND json_array_length(wish->'paths') = 0 THEN
      happened := json_build_object('act', act, 'id', w_id, 'paths', '[]'::json, 'fence', (p_want->>'fence')::bigint, 'until_us', p_now);
    ELSE
      why := format('lease `%s` is over: it ended or was released', w_id);
    END IF;
    RETURN;
  END IF;
  IF cardinality(held.paths) > 0 THEN
    IF held.fence <> coalesce((p_want->>'fence')::bigint, -1) THEN
      why := format('lease `%s` has another number', w_id); RETURN;
    END IF;
    IF held.by_role <> session_user AND NOT quipu.keeps() AND NOT (act = 'release' AND quipu.is_left(p_project, held, p_now)) THEN
      why := format('lease `%s` was taken by the database role %s', w_id, held.by_role); RETURN;
    END IF;
    IF act = 'renew' AND held.until_us <= p_now THEN
      why := format('lease `%s` is over: it ended by the clock of the database', w_id); RETURN;
    END IF;
  END IF;
  IF act = 'renew' THEN
    UPDATE quipu.lease l SET until_us = ends_us WHERE l.project = p_project AND l.id = w_id;
  ELSIF act = 'release' THEN
    DELETE FROM quipu.lease l WHERE l.project = p_project AND l.id = w_id;
    ends_us := p_now;
  ELSE
    why := format('`%s` is nothing that a lease does', act); RETURN;
  END IF;
  happened := json_build_object('act', act, 'id', w_id, 'paths', to_json(held.paths), 'fence', held.fence, 'until_us', ends_us);
END $$;

-- One operation on one file: null if it may be, else the verdict and what.
-- `p_before` is what an earlier operation of the same commit made of the file.
CREATE FUNCTION quipu.check_op(p_project uuid, p_kind text, p_op json, p_token text, p_now bigint, p_before jsonb, OUT verdict text, OUT what text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  named text := p_op->>'path';
  act text := p_op->>'op';
  held quipu.lease;
  h quipu.head;
  there boolean;
BEGIN
  IF named IS NULL OR named = '' OR named ~ '(^|/)(\.{1,2})?(/|$)' OR named ~ '^\.(quipu|git)(/|$)' OR length(named) > 4096
     OR act IS NULL OR act NOT IN ('write', 'append', 'remove', 'keep')
     OR p_op->>'version' IS NULL OR p_op->>'class' IS NULL OR coalesce((p_op->>'len')::bigint, -1) < 0 THEN
    verdict := 'refused'; what := format('`%s` is no operation on a memory file', coalesce(named, '?')); RETURN;
  END IF;
  IF act = 'keep' THEN RETURN; END IF;
  SELECT l.* INTO held FROM quipu.lease l
    WHERE l.project = p_project AND l.until_us > p_now AND l.id IS DISTINCT FROM p_token
      AND EXISTS (SELECT FROM unnest(l.paths) a WHERE named ~ quipu.regex(a)) LIMIT 1;
  IF FOUND THEN
    verdict := 'held'; what := format('`%s` is leased by another (lease %s)', named, held.id); RETURN;
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

-- Carries one record into the log and what is derived from it.
CREATE FUNCTION quipu.write_down(p_project uuid, p_rev bigint, p_id uuid, p_at bigint, p_body text, p_lease json, p_bytes bytea[], p_from int)
RETURNS int LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  parsed json := p_body::json;
  op json;
  place int := 0;
  b bytea;
  h bytea;
BEGIN
  INSERT INTO quipu.log (project, rev, id, at_us, body, lease) VALUES (p_project, p_rev, p_id, p_at, p_body, p_lease);
  FOR op IN SELECT * FROM json_array_elements(coalesce(parsed->'ops', '[]'::json)) LOOP
    place := place + 1;
    b := p_bytes[p_from + place];
    h := NULL;
    IF octet_length(b) > 8192 THEN
      h := sha256(b);
      INSERT INTO quipu.body VALUES (h, b) ON CONFLICT DO NOTHING;
      b := NULL;
    END IF;
    INSERT INTO quipu.op VALUES (p_project, p_rev, place, b, h);
    IF op->>'op' <> 'keep' THEN
      INSERT INTO quipu.head VALUES (p_project, op->>'path', op->>'class', op->>'version', op->>'op' = 'remove', p_rev)
        ON CONFLICT (project, path) DO UPDATE SET class = excluded.class, version = excluded.version, gone = excluded.gone, rev = excluded.rev;
    END IF;
  END LOOP;
  IF parsed->>'key' IS NOT NULL THEN
    INSERT INTO quipu.key VALUES (p_project, parsed->>'key', p_rev) ON CONFLICT DO NOTHING;
  END IF;
  RETURN p_from + place;
END $$;

-- The only way for a commit: everything is checked and written in one transaction, in one call.
--   p_rev, p_id    the end of the working copy that judged it
--   p_ids          ids made by the client: the same again is the first again
--   p_bodies       the records as JSON, without bytes, number, time and lease
--   p_leases       what each does to a lease, or null
--   p_bytes        the bytes of all operations, one after another
--   p_token, p_fence  the lease that is shown
--   p_relies       {path: version}: what the judge relied on
CREATE FUNCTION quipu.commit(p_project uuid, p_rev bigint, p_id text, p_ids text[], p_bodies text[], p_leases text[], p_bytes bytea[],
  p_token text, p_fence bigint, p_relies text)
RETURNS SETOF quipu.answer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  a quipu.answer;
  p quipu.project;
  held quipu.lease;
  now_us bigint;
  parsed json;
  op json;
  checked record;
  before jsonb := '{}';
  event text;
  event_of int;
  happened json;
  place int := 0;
BEGIN
  -- First of all the project's row: whoever comes later waits here, and sees what was done before.
  SELECT * INTO p FROM quipu.project x WHERE x.id = p_project FOR UPDATE;
  a.now_us := quipu.now_us();
  IF NOT FOUND THEN
    a.verdict := 'refused'; a.what := 'there is no such project here'; RETURN NEXT a; RETURN;
  END IF;
  now_us := a.now_us;
  a.newest := p.rev;
  IF p_rev > p.rev OR NOT quipu.follows(p_project, p_rev, p_id) THEN
    a.verdict := 'diverged'; RETURN NEXT a; RETURN;
  END IF;
  a.verdict := 'accepted';
  IF EXISTS (SELECT FROM quipu.log l WHERE l.project = p_project AND l.id = p_ids[1]::uuid) THEN
    RETURN NEXT a;
    RETURN QUERY SELECT * FROM quipu.rows_after(p_project, p_rev);
    RETURN;
  END IF;

  <<checks>>
  BEGIN
    SELECT r.key INTO a.what FROM json_each_text(coalesce(p_relies, '{}')::json) r
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
      parsed := p_bodies[i]::json;
      IF coalesce((parsed->>'v')::int, 0) <> 1 OR parsed->>'kind' IS NULL OR json_typeof(parsed->'who') IS DISTINCT FROM 'object'
         OR json_typeof(coalesce(parsed->'ops', '[]'::json)) <> 'array' OR parsed->'lease' IS NOT NULL THEN
        a.verdict := 'refused'; a.what := 'this is no record of a format that this store knows'; EXIT checks;
      END IF;
      IF parsed->>'key' IS NOT NULL AND EXISTS (SELECT FROM quipu.key k WHERE k.project = p_project AND k.key = parsed->>'key') THEN
        a.verdict := 'stale'; a.what := format('key `%s`', parsed->>'key'); EXIT checks;
      END IF;
      FOR op IN SELECT * FROM json_array_elements(coalesce(parsed->'ops', '[]'::json)) LOOP
        SELECT c.verdict, c.what INTO checked FROM quipu.check_op(p_project, parsed->>'kind', op, p_token, now_us, before->(op->>'path')) c;
        IF checked.verdict IS NOT NULL THEN
          a.verdict := checked.verdict; a.what := checked.what; EXIT checks;
        END IF;
        place := place + 1;
        IF op->>'op' <> 'remove' AND (p_bytes[place] IS NULL
           OR op->>'op' <> 'append' AND octet_length(p_bytes[place]) <> (op->>'len')::bigint) THEN
          a.verdict := 'refused'; a.what := format('the bytes of `%s` are not there, or not as many as it says', op->>'path'); EXIT checks;
        END IF;
        -- A later operation of this commit is judged behind this one.
        IF op->>'op' <> 'keep' THEN
          before := before || jsonb_build_object(op->>'path',
            jsonb_build_object('op', op->>'op', 'class', op->>'class', 'version', op->>'version'));
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
      place := quipu.write_down(p_project, p.rev, p_ids[i]::uuid, p.at_us, p_bodies[i], CASE WHEN i = event_of THEN happened END, p_bytes, place);
    END LOOP;
    UPDATE quipu.project x SET rev = p.rev, fence = p.fence, at_us = p.at_us WHERE x.id = p_project;
    a.newest := p.rev;
  END IF;
  RETURN NEXT a;
  -- What the working copy does not have, its own included: so that it need not ask again.
  RETURN QUERY SELECT * FROM quipu.rows_after(p_project, p_rev);
END $$;

-- The id and the newest revision of a project, by its name.
CREATE FUNCTION quipu.locate(p_name text, OUT id text, OUT rev bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT p.id::text, p.rev FROM quipu.project p WHERE p.name = p_name
$$;

CREATE FUNCTION quipu.projects(OUT name text, OUT id text, OUT rev bigint) RETURNS SETOF record
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT p.name, p.id::text, p.rev FROM quipu.project p ORDER BY p.name
$$;

-- Makes a project. One of that name that holds nothing yet is as good as new.
CREATE FUNCTION quipu.found(p_name text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  made text;
BEGIN
  IF NOT quipu.keeps() THEN
    RAISE EXCEPTION 'the database role % may not found projects', session_user USING ERRCODE = 'insufficient_privilege';
  END IF;
  INSERT INTO quipu.project (name) VALUES (p_name) ON CONFLICT (name) DO NOTHING;
  SELECT p.id::text INTO made FROM quipu.project p WHERE p.name = p_name AND p.rev = 0;
  RETURN made;
END $$;

-- Takes over records with their numbers and times: a project that moves here with its history.
CREATE FUNCTION quipu.load(p_project uuid, p_rev bigint, p_ids text[], p_at_us bigint[], p_bodies text[], p_leases text[], p_bytes bytea[])
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
    place := quipu.write_down(p_project, p.rev, p_ids[i]::uuid, p_at_us[i], p_bodies[i], lease, p_bytes, place);
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

-- What is wrong with a project's log, one sentence a row.
CREATE FUNCTION quipu.examine(p_project uuid) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p quipu.project;
  n bigint; first bigint; last bigint;
BEGIN
  SELECT * INTO p FROM quipu.project x WHERE x.id = p_project;
  SELECT count(*), min(l.rev), max(l.rev) INTO n, first, last FROM quipu.log l WHERE l.project = p_project;
  IF n <> p.rev OR coalesce(first, 1) <> 1 OR coalesce(last, 0) <> p.rev THEN
    RETURN NEXT format('the log has %s records from %s to %s, and the project says %s', n, first, last, p.rev);
  END IF;
  RETURN QUERY SELECT format('revision %s has %s operations and %s of them have their bytes', x.rev, x.ops, x.found) FROM (
    SELECT l.rev, json_array_length(coalesce(l.body::json->'ops', '[]'::json)) AS ops,
      (SELECT count(*) FROM quipu.op o WHERE o.project = l.project AND o.rev = l.rev) AS found
    FROM quipu.log l WHERE l.project = p_project) x WHERE x.ops <> x.found;
  RETURN QUERY SELECT DISTINCT format('the bytes stored as %s are others', encode(b.hash, 'hex')) FROM quipu.op o JOIN quipu.body b ON b.hash = o.hash
    WHERE o.project = p_project AND sha256(b.bytes) <> b.hash;
  RETURN QUERY SELECT format('the head of `%s` names revision %s, which says otherwise', h.path, h.rev) FROM quipu.head h
    WHERE h.project = p_project AND NOT EXISTS (SELECT FROM quipu.log l, json_array_elements(l.body::json->'ops') o
      WHERE l.project = p_project AND l.rev = h.rev AND o->>'path' = h.path AND o->>'version' = h.version);
END $$;

CREATE FUNCTION quipu.beat(p_project uuid, p_name text, p_says text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO quipu.worker VALUES (p_project, p_name, quipu.now_us(), p_says::json, session_user)
    ON CONFLICT (project, name) DO UPDATE SET seen_us = excluded.seen_us, says = excluded.says, by_role = excluded.by_role
    WHERE quipu.worker.by_role = session_user
$$;

CREATE FUNCTION quipu.leave(p_project uuid, p_name text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  DELETE FROM quipu.worker w WHERE w.project = p_project AND w.name = p_name
    AND (w.by_role = session_user OR w.seen_us < quipu.now_us() - 60000000)
$$;

CREATE FUNCTION quipu.workers(p_project uuid, OUT name text, OUT silent_us bigint, OUT says text, OUT by_role text) RETURNS SETOF record
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT w.name, quipu.now_us() - w.seen_us, w.says::text, w.by_role::text FROM quipu.worker w WHERE w.project = p_project ORDER BY w.name
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA quipu FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA quipu FROM PUBLIC;
