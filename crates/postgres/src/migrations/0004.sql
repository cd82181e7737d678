-- Records of format 2: bytes may be a difference to the version before. Its length says nothing about the length of the file, so it is not
-- compared; working copies check the text that results against its version. Nothing else changes.

DO $migrate$
DECLARE
  made text := pg_get_functiondef('quipu.commit(uuid,bigint,text,text[],text[],text[],bytea[],text,bigint,text)'::regprocedure);
  format_before text := '(parsed->>''v'')::int, 0) <> 1';
  format_now text := '(parsed->>''v'')::int, 0) <> 2';
  length_before text := 'act <> ''append'' AND octet_length(p_bytes[place])';
  length_now text := 'act <> ''append'' AND NOT coalesce((op->>''splice'')::boolean, false) AND octet_length(p_bytes[place])';
BEGIN
  IF position(format_before IN made) = 0 OR position(length_before IN made) = 0 THEN
    RAISE EXCEPTION 'quipu.commit is not the function of schema 3';
  END IF;
  EXECUTE replace(replace(made, format_before, format_now), length_before, length_now);
END $migrate$;
