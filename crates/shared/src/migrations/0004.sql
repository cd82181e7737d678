-- Records of format 2: bytes may be a difference to the version before. The check of the format is the only thing that changes.

DO $migrate$
DECLARE
  made text := pg_get_functiondef('quipu.commit(uuid,bigint,text,text[],text[],text[],bytea[],text,bigint,text)'::regprocedure);
BEGIN
  IF position('(parsed->>''v'')::int, 0) <> 1' IN made) = 0 THEN
    RAISE EXCEPTION 'quipu.commit is not the function of schema 3';
  END IF;
  EXECUTE replace(made, '(parsed->>''v'')::int, 0) <> 1', '(parsed->>''v'')::int, 0) <> 2');
END $migrate$;
