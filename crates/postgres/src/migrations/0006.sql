-- A name that no working copy takes would stop every working copy, for the log is append-only: names are checked as the program checks
-- them (`ProjectPath::parse`). And what sets up agent hosts, or begins a project inside a project, is out of a worker's reach.

-- A name as a file system that is careless about case and compatibility forms sees it. Normal forms are only known in UTF-8.
CREATE FUNCTION quipu.folded(named text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF current_setting('server_encoding') = 'UTF8' THEN
    RETURN normalize(lower(normalize(named, NFKC)), NFKC);
  END IF;
  RETURN lower(named);
END $$;

-- Whether a text names a file of a project.
CREATE FUNCTION quipu.is_name(named text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF octet_length(named) > 1024 OR named ~ '(^|/)(\.{1,2})?(/|$)' OR named ~ '^.:/'
     OR EXISTS (SELECT FROM unnest(string_to_array(named, '/')) part WHERE octet_length(part) > 255) THEN
    RETURN false;
  END IF;
  IF quipu.folded(named) ~ '(^|/)(\.(git|quipu)(::[^/]*)?|(git|quipu)~1)(/|$)' THEN
    RETURN false;
  END IF;
  -- Nearly every name is of such characters only.
  IF named ~ '^[A-Za-z0-9_/.-]*$' THEN
    RETURN named !~ '\.(/|$)';
  END IF;
  IF named ~ '[\u0001-\u001f\u007f\\]' OR named ~ '(^|/) ' OR named ~ '[. ](/|$)' THEN
    RETURN false;
  END IF;
  RETURN current_setting('server_encoding') <> 'UTF8' OR
    (named IS NFC NORMALIZED
      AND named !~ '[\u0001-\u001f\u007f-\u009f\\\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\U00013430-\U00013440\U00013447-\U00013455\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U0003fffe\U0003ffff\U0004fffe\U0004ffff\U0005fffe\U0005ffff\U0006fffe\U0006ffff\U0007fffe\U0007ffff\U0008fffe\U0008ffff\U0009fffe\U0009ffff\U000afffe\U000affff\U000bfffe\U000bffff\U000cfffe\U000cffff\U000dfffe\U000dffff\U000efffe\U000effff\U000ffffe\U000fffff\U0010fffe\U0010ffff]'
      AND named !~ '(^|/)[\u0009-\u000d\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]' AND named !~ '[\u0009-\u000d\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000](/|$)');
END $$;

-- Whether only people may write a file: the settings of agent hosts, in which commands stand that a host runs, and contracts in folders.
CREATE FUNCTION quipu.is_for_people(named text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT quipu.folded(named) ~ '(^|/)quipu\.toml(/|$)'
    OR quipu.folded(named) ~ '(^|/)(\.mcp\.json|\.claude/settings\.json|\.claude/settings\.local\.json|\.codex/config\.toml|\.codex/hooks\.json|\.gemini/settings\.json|\.qwen/settings\.json|opencode\.jsonc?|\.gemini/\.env|\.qwen/\.env|\.vscode/mcp\.json|\.cursor/mcp\.json|\.cursor/hooks\.json)$'
    OR quipu.folded(named) ~ '(^|/)(\.opencode/(plugins?|tools?)|\.agents/plugins|\.gemini/extensions|\.qwen/extensions|\.claude/plugins)/'
$$;

CREATE OR REPLACE FUNCTION quipu.check_op(p_project uuid, p_kind text, p_op jsonb, p_token text, p_now bigint, p_before jsonb, OUT verdict text, OUT what text)
LANGUAGE plpgsql AS $$
DECLARE
  h quipu.head;
  held text;
  there boolean;
  named text := p_op->>'path';
  act text := p_op->>'op';
BEGIN
  IF named IS NULL OR NOT quipu.is_name(named)
     OR act IS NULL OR act NOT IN ('write', 'append', 'remove', 'keep')
     OR p_op->>'version' IS NULL OR p_op->>'class' IS NULL OR coalesce((p_op->>'len')::bigint, -1) < 0
     OR coalesce(jsonb_typeof(p_op->'deltas'), 'number') <> 'number' OR coalesce(jsonb_typeof(p_op->'splice'), 'boolean') <> 'boolean' THEN
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
  IF quipu.is_for_people(named) THEN
    verdict := 'refused'; what := format('`%s` sets up agent hosts or begins a project of its own: this database role may not change it', named); RETURN;
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

REVOKE ALL ON FUNCTION quipu.folded(text), quipu.is_name(text), quipu.is_for_people(text) FROM PUBLIC;
