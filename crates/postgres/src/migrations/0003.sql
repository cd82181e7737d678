-- Gates are for people: the role of a worker does not decide at one, whatever its program says.

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
      IF parsed->'note'->>'ruling' IN ('approved', 'rejected') AND NOT quipu.keeps() THEN
        a.verdict := 'refused'; a.what := 'a gate is for people: this database role may not decide at one'; EXIT checks;
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
