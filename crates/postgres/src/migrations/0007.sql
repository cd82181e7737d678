-- Records of format 3: a record names its hash `hash` and the digest of a request `request`.

DO $migrate$
DECLARE
  made text := pg_get_functiondef('quipu.commit(uuid,bigint,text,text[],text[],text[],bytea[],text,bigint,text)'::regprocedure);
  format_before text := '(parsed->>''v'')::int, 0) <> 2';
  format_now text := '(parsed->>''v'')::int, 0) <> 3';
BEGIN
  IF position(format_before IN made) = 0 THEN
    RAISE EXCEPTION 'quipu.commit is not the function of schema 6';
  END IF;
  EXECUTE replace(made, format_before, format_now);
END $migrate$;
