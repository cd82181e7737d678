-- Two rights in this database. Run it as the owner of the schema; it may be run again.
--   quipu_worker   judges and commits; cannot rewrite what is append-only, sealed or a record, nor change the contract
--   quipu_keeper   a person's: may amend, change the contract, found and fill projects, end anyone's lease
-- A login of its own for each host: a lease belongs to the login that took it.
--   CREATE ROLE host1 LOGIN PASSWORD '...' IN ROLE quipu_worker;
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'quipu_worker') THEN CREATE ROLE quipu_worker NOLOGIN; END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'quipu_keeper') THEN CREATE ROLE quipu_keeper NOLOGIN IN ROLE quipu_worker; END IF;
END $$;
REVOKE ALL ON ALL TABLES IN SCHEMA quipu FROM PUBLIC, quipu_worker, quipu_keeper;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA quipu FROM PUBLIC, quipu_worker, quipu_keeper;
GRANT USAGE ON SCHEMA quipu TO quipu_worker;
GRANT SELECT ON quipu.migration TO quipu_worker;
GRANT EXECUTE ON FUNCTION
  quipu.commit(uuid, bigint, text, text[], text[], text[], bytea[], text, bigint, text),
  quipu.after(uuid, bigint, text), quipu.turn(uuid, bigint, text), quipu.head_rev(uuid), quipu.tell(uuid),
  quipu.locate(text), quipu.projects(), quipu.examine(uuid), quipu.entries(uuid, bigint),
  quipu.beat(uuid, text, text), quipu.leave(uuid, text), quipu.workers(uuid)
  TO quipu_worker;
GRANT EXECUTE ON FUNCTION
  quipu.keep(), quipu.found(text), quipu.load(uuid, bigint, text[], bigint[], text[], text[], bytea[])
  TO quipu_keeper;
