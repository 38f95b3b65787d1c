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
  own_tokens bigint, tool_calls integer, errors integer, size_bytes bigint, newest bigint, parent text,
  inherited integer, damaged boolean, title_text text, tags text[], labels text[], models text[], tools text[],
  verdict text) with (fillfactor = 80);
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

create function forkbook.person() returns text language sql stable as
  $$select coalesce(nullif(current_setting('forkbook.person', true), ''), session_user::text)$$;
create function forkbook.may_read(owner text, access text, link text) returns boolean language sql stable as
  $$select owner = forkbook.person() or access = 'team'
    or (access = 'link' and link = current_setting('forkbook.link', true))$$;
alter table forkbook.session alter column owner set default forkbook.person();
alter table forkbook.trial alter column owner set default forkbook.person();
alter table forkbook.message alter column author set default forkbook.person();
alter table forkbook.audit alter column person set default forkbook.person();

-- The messages whose text holds all of these patterns, of the sessions that the person may read.
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
    join forkbook.session s on s.n = p.session where p.message = m.n and s.kind is null
    and forkbook.may_read(s.owner, s.access, s.link))' || about;
end $$;

-- What is read anew of a session may be written by whoever may read it: it says nothing that is not there.
create function forkbook.delete_for_good(wanted text) returns boolean
  language plpgsql security definer set search_path = pg_catalog as $$
declare
  gone bigint;
  freed bigint[];
begin
  perform pg_advisory_xact_lock(7305802120);
  delete from forkbook.session where entry = wanted and (owner = forkbook.person() or not row_security_active(
    'forkbook.session')) returning n into gone;
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
