"""The tables of a database of sessions, made and brought up to date step by step, by one process at a time.

A session is a row of ``session`` and its messages are those that its rows of ``place`` name, in the order of ``seq``:
a fork copies places, never texts. A line is kept as it was written, as text (jsonb would change it). What lies in the
trash is a row of ``session``, too, with a ``kind``. Lines that are no message stand in ``damage`` beside them.

Who may read and change what is decided here, by row-level security: for every role that does not own the tables. The
person is ``forkbook.person`` (set for one transaction), else the role itself. ``message`` is searched through
``candidates`` alone, which knows who asks: a condition on a text may not use an index before the row was allowed.

Does not know sessions' meaning: titles, times and sums are written by ``summary``.
"""

from __future__ import annotations

from typing import Any

import psycopg

from sessions_lib.errors import StorageError

_LOCK = 7_305_802_119  # of those who make or change tables

STEPS = (
    """
create extension if not exists pg_trgm with schema public;
create sequence forkbook.change;
create table forkbook.session(
  n bigint generated always as identity primary key, id text collate "C" not null, made uuid unique,
  owner text not null, access text not null default 'private' check (access in ('private', 'team', 'link')), link text,
  kind text, entry text unique, trashed timestamptz,
  messages integer not null default 0, bytes bigint not null default 0, lines integer not null default 0,
  written timestamptz, meta text not null, meta_version integer not null default 1,
  changed bigint not null default nextval('forkbook.change'), summed bigint,
  info text, title text collate "C", last_active bigint, created bigint, turns integer, tokens bigint,
  own_tokens bigint, tool_calls integer, errors integer, size_bytes bigint, parent text, inherited integer,
  damaged boolean, title_text text, tags text[], labels text[], spelled text[], models text[], model_names text[],
  tools text[], roles text[], verdict text, cost float8, priced text, priced_at bigint) with (fillfactor = 80);
create unique index session_id on forkbook.session(lower(id)) where kind is null;
create index session_by_time on forkbook.session(last_active desc nulls last, id) where kind is null;
create index session_stale on forkbook.session(n) where kind is null and summed is distinct from changed;
create index session_changed on forkbook.session(changed) where kind is null;
create index session_by_parent on forkbook.session(parent) where kind is null and parent is not null;
create table forkbook.message(
  n bigint generated always as identity primary key, id text not null, role text not null, author text not null,
  line text not null, said text not null);
create index message_said on forkbook.message using gin(said public.gin_trgm_ops);
create table forkbook.place(
  session bigint, seq integer, message bigint not null, time bigint, turn integer, primary key(session, seq));
create index place_by_message on forkbook.place(message);
create table forkbook.damage(
  session bigint, line integer, seq integer not null, held integer not null, raw bytea not null,
  kind text not null, reason text not null, primary key(session, line));
create unlogged table forkbook.lease(
  name text primary key, token uuid not null, until timestamptz not null, pid integer, host text, since text,
  stop boolean not null default false);
create table forkbook.trial(name text primary key, owner text not null, kept text not null);
create table forkbook.audit(
  n bigint generated always as identity primary key, at timestamptz not null default clock_timestamp(),
  person text not null, act text not null, session text);

-- Who asks: the person of this transaction, else the role. Whoever owns the tables and names no person sees all.
create function forkbook.person() returns text language sql stable as
  $$select coalesce(nullif(current_setting('forkbook.person', true), ''), session_user::text)$$;
create function forkbook.sees_all() returns boolean language sql stable as
  $$select nullif(current_setting('forkbook.person', true), '') is null and pg_has_role(session_user,
    (select relowner from pg_class where oid = 'forkbook.session'::regclass), 'usage')$$;
alter table forkbook.session alter column owner set default forkbook.person();
alter table forkbook.trial alter column owner set default forkbook.person();
alter table forkbook.message alter column author set default forkbook.person();
alter table forkbook.audit alter column person set default forkbook.person();

alter table forkbook.session enable row level security, force row level security;
create policy reads on forkbook.session for select using ((select forkbook.sees_all())
  or owner = (select forkbook.person()) or access = 'team'
  or (access = 'link' and link = (select current_setting('forkbook.link', true))));
create policy makes on forkbook.session for insert with check ((select forkbook.sees_all())
  or owner = (select forkbook.person()));
create policy writes on forkbook.session for update using ((select forkbook.sees_all())
  or owner = (select forkbook.person()) or access = 'team');
create policy deletes on forkbook.session for delete using ((select forkbook.sees_all())
  or owner = (select forkbook.person()));
alter table forkbook.trial enable row level security, force row level security;
create policy all_of_it on forkbook.trial using ((select forkbook.sees_all()) or owner = (select forkbook.person()));
-- What belongs to a session is read and written by whoever may read and write the session.
alter table forkbook.place enable row level security;
create policy reads on forkbook.place for select using (exists(
  select from forkbook.session s where s.n = place.session));
create policy makes on forkbook.place for insert with check (exists(select from forkbook.session s
  where s.n = place.session and (s.owner = (select forkbook.person()) or s.access = 'team')));
alter table forkbook.damage enable row level security;
create policy reads on forkbook.damage for select using (exists(
  select from forkbook.session s where s.n = damage.session));
create policy makes on forkbook.damage for insert with check (exists(select from forkbook.session s
  where s.n = damage.session and (s.owner = (select forkbook.person()) or s.access = 'team')));
alter table forkbook.message enable row level security;
create policy reads on forkbook.message for select using (exists(
  select from forkbook.place p where p.message = message.n));
create policy makes on forkbook.message for insert with check (author = (select forkbook.person()));
alter table forkbook.lease enable row level security;
create policy all_of_it on forkbook.lease using (name like '.%' or exists(
  select from forkbook.session s where s.kind is null and lower(s.id) = name)) with check (true);
alter table forkbook.audit enable row level security;
create policy notes on forkbook.audit for insert with check (person = (select forkbook.person()));

-- The messages whose text holds all of these patterns, of the sessions that the person may read. A policy would keep
-- the index from being used: no condition on a text may be looked at before the row is allowed.
create function forkbook.candidates(patterns text[]) returns setof bigint
  language plpgsql stable security definer set search_path = pg_catalog as $$
declare
  pattern text;
  about text := '';
begin
  foreach pattern in array patterns loop
    about := about || format(' and m.said like %L', pattern);
  end loop;
  return query execute 'select m.n from forkbook.message m where exists(select from forkbook.place p
    join forkbook.session s on s.n = p.session where p.message = m.n and s.kind is null)' || about;
end $$;

-- What a session adds up to may be written by whoever may read it: it says nothing that is not there.
create function forkbook.put_summary(
  which bigint, seen bigint, said text, sums jsonb, seqs integer[], times bigint[], turns integer[])
  returns void language plpgsql security definer set search_path = pg_catalog as $$
begin
  if not exists(select from forkbook.session where n = which) then return; end if;
  update forkbook.session s set summed = seen, info = said, title = new.title, last_active = new.last_active,
    created = new.created, turns = new.turns, tokens = new.tokens, own_tokens = new.own_tokens,
    tool_calls = new.tool_calls, errors = new.errors, size_bytes = new.size_bytes, parent = new.parent,
    inherited = new.inherited, damaged = new.damaged, title_text = new.title_text, tags = new.tags,
    labels = new.labels, spelled = new.spelled, models = new.models, model_names = new.model_names,
    tools = new.tools, roles = new.roles, verdict = new.verdict
  from jsonb_populate_record(null::forkbook.session, sums) as new where s.n = which;
  update forkbook.place p set time = new.time, turn = new.turn
  from unnest(seqs, times, turns) as new(seq, time, turn) where p.session = which and p.seq = new.seq;
end $$;
create function forkbook.put_cost(which bigint, seen bigint, version text, dollars float8) returns void
  language sql security definer set search_path = pg_catalog as $$
  update forkbook.session set cost = dollars, priced = version, priced_at = seen where n = which
$$;

-- What a role needs that is to work with sessions, its own and its team's, and owns nothing.
create function forkbook.admit(role_name text) returns void language plpgsql as $$
begin
  execute format('grant usage on schema forkbook to %I', role_name);
  execute format('grant select on all tables in schema forkbook to %I', role_name);
  execute format('grant insert on forkbook.session, forkbook.message, forkbook.place, forkbook.damage,
    forkbook.lease, forkbook.trial, forkbook.audit to %I', role_name);
  execute format('grant update on forkbook.session, forkbook.lease, forkbook.trial to %I', role_name);
  execute format('grant delete on forkbook.session, forkbook.trial to %I', role_name);
  execute format('grant usage on all sequences in schema forkbook to %I', role_name);
end $$;

-- A text goes when nothing names it any more, in whosesoever session.
create function forkbook.delete_for_good(wanted text) returns boolean
  language plpgsql security definer set search_path = pg_catalog as $$
declare
  gone bigint;
  freed bigint[];
begin
  perform pg_advisory_xact_lock(7305802120);
  delete from forkbook.session where entry = wanted returning n into gone;
  if gone is null then return false; end if;
  with places as (delete from forkbook.place where session = gone returning message)
    select array_agg(message) into freed from places;
  delete from forkbook.damage where session = gone;
  delete from forkbook.message m where m.n = any(freed)
    and not exists(select from forkbook.place p where p.message = m.n);
  return true;
end $$;
""",
)
"""Each step brings the tables to the next version. A step that was released is never changed."""


def migrate(connection: psycopg.Connection[Any], where: str) -> None:
    """Bring the tables of the database up to this version; ``StorageError`` if they are of a newer one."""
    version = _version(connection)
    if version == len(STEPS):
        return
    if version < len(STEPS):
        with connection.transaction():
            connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))  # its end ends it: poolers are fine
            connection.execute("create schema if not exists forkbook")
            connection.execute("create table if not exists forkbook.version(version integer not null)")
            version = _version(connection)  # another process may have been faster
            for step in STEPS[version:]:
                connection.execute(step)
            connection.execute("delete from forkbook.version")
            connection.execute("insert into forkbook.version values(%s)", (max(version, len(STEPS)),))
    if version > len(STEPS):
        raise StorageError(
            where, f"a newer Forkbook keeps its sessions here (version {version})", "Update Forkbook to open it."
        )


def _version(connection: psycopg.Connection[Any]) -> int:
    found = connection.execute("select to_regclass('forkbook.version')").fetchone()
    if found is None or found[0] is None:
        return 0
    row = connection.execute("select max(version) from forkbook.version").fetchone()
    return int(row[0]) if row and row[0] is not None else 0
