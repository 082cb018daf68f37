-- An "after" trigger fires when the row is locked already, so that its clock gives the order of the changes of one row. A transaction
-- that is rolled back takes its note with it.
create table if not exists recorded_changes (
  number  bigserial primary key,
  at      timestamptz not null,
  by      text not null,
  session text not null,
  before  jsonb,
  after   jsonb
);
truncate recorded_changes;

create or replace function recorded_row(r sessions) returns jsonb language sql as $$
  select jsonb_build_object('status', r.status, 'expires_at', r.expires_at, 'finished_at', r.finished_at,
    'rest', (to_jsonb(r) - 'status' - 'expires_at' - 'finished_at')::text)
$$;

create or replace function record_change() returns trigger security definer set search_path from current language plpgsql as $$
begin
  insert into recorded_changes (at, by, session, before, after) values (clock_timestamp(), session_user, coalesce(new.id, old.id)::text,
    case when tg_op <> 'INSERT' then recorded_row(old) end, case when tg_op <> 'DELETE' then recorded_row(new) end);
  return null;
end $$;

create or replace trigger record_change after insert or update or delete on sessions for each row execute function record_change();
