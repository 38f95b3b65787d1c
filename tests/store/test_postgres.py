"""What only a database can do or suffer: refusals in one sentence, cut connections, two schemas, two app servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from sessions_lib import SessionManager
from sessions_lib.errors import SessionError, SessionLocked, StorageError
from sessions_lib.messages import encoding
from sessions_lib.store.postgres import leases
from sessions_lib.store.postgres.database import Database
from sessions_lib.store.postgres.store import PostgresStore
from sessions_lib.store.store import open_store
from tests import database
from tests.database import PASSWORD, SERVER
from tests.record import said

pytestmark = database.needs_server


@pytest.fixture
def address() -> str:
    return SERVER.new_database()


@pytest.fixture
def manager(address: str) -> Iterator[SessionManager]:
    store = PostgresStore(Database(address))
    yield SessionManager(store)
    store.database.close()


def user(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, "timestamp": "2026-03-01T10:00:00.000Z", **more}


def rows(address: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(address, autocommit=True) as connection:
        return connection.execute(statement).fetchall()


# --- where it is ------------------------------------------------------------------------------------------------------


def test_everybody_who_takes_a_folder_takes_an_address(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    SessionManager(address).create("Tides", session_id="tides").append(user("High water?"))
    monkeypatch.setenv("SESSIONS_DIR", address)

    assert [row.id for row in SessionManager().list()] == ["tides"]
    assert open_store(address) is open_store(address)


def test_no_name_of_a_store_holds_its_password(address: str) -> None:
    store = open_store(address)
    known = SessionManager(store).create("Tides", session_id="tides")

    shown = [store.name, store.where, repr(known), repr(store), known.report.where, str(known.meta)]

    assert store.name == f"postgresql://forkbook@127.0.0.1:{SERVER.port}/{address.rpartition('/')[2]}"
    assert [text for text in shown if PASSWORD in text] == []


def test_the_password_may_come_from_the_environment(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)

    assert SessionManager(address.replace(f":{PASSWORD}", "")).list() == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda at: at.replace(PASSWORD, "wrong-secret"), "the password was refused"),
        (lambda at: at.replace(f":{PASSWORD}", ""), "it asks for a password, and none was given"),
        (lambda at: at.rpartition("/")[0] + "/nowhere", "there is no such database or role"),
        (lambda at: at.replace(f":{SERVER.port}", ":1"), "the database cannot be reached"),
        (lambda at: at + "?port=abc", "This is no address"),
        (lambda at: "postgresql://a:b%zz@host/x", "This is no address"),
    ],
)
def test_what_cannot_be_opened_is_told_in_one_sentence(
    address: str, change: Any, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSFILE", "/nowhere")

    with pytest.raises(SessionError) as raised:
        SessionManager(change(address)).list()

    text = str(raised.value)
    assert told in text or told == "This is no address"
    assert "\n" not in text
    assert PASSWORD not in text
    assert "wrong-secret" not in text
    assert "b%zz" not in text


def test_a_newer_schema_is_refused_and_left_alone(address: str) -> None:
    SERVER.execute("update forkbook.version set version = 999", address.rpartition("/")[2])

    with pytest.raises(StorageError, match="a newer Forkbook keeps its sessions here") as raised:
        SessionManager(address).list()

    assert "Update Forkbook" in str(raised.value)
    assert rows(address, "select version from forkbook.version") == [(999,)]


def test_a_role_without_rights_is_told_so(address: str) -> None:
    name = address.rpartition("/")[2]
    SessionManager(address).create(session_id="tides")
    SERVER.execute(f"create role guest_{name} login password 'x'")

    with pytest.raises(StorageError, match="this role has no right to do that"):
        SessionManager(SERVER.address(name, f"guest_{name}", "x")).list()


# --- lines ------------------------------------------------------------------------------------------------------------


def test_lines_come_out_as_they_went_in(manager: SessionManager) -> None:
    lines = [
        '{"role": "user",  "content": "caf\\u00e9 \\u0000 \\u2028", "n": 123456789012345678901234567890, "x": 1.50}',
        '{"id":"a","role":"assistant","content":"ж 東京 🦉","extra":{"b":1,"a":[null,true]}}',
        "",
        "no message",
        "bytes \udcff\udcfe and \x00 that are no text",
        '{"role":"user","content":"one"}{"role":"user","content":"two"}',
        '\ufeff{"role":"user","content":"mark"}',
        '{"role":"user","content":"torn',
    ]
    session = manager.create(session_id="odd")

    manager.store.put_lines("odd", lines)

    assert list(manager.store.lines("odd", range(1, 20)).values()) == lines
    assert manager.store.line_count("odd") == 8
    again = manager.open("odd")
    texts = [message["content"] for message in again.messages]
    assert texts == ["café \0 \u2028", "ж 東京 🦉", "one", "two", "mark"]
    assert again.messages[0]["n"] == 123456789012345678901234567890
    assert [(one.line, one.kind) for one in again.report.damaged] == [(4, "not JSON"), (5, "undecodable"), (8, "torn")]
    session.append(user("On", id="on"))
    assert [one.kind for one in manager.open("odd").report.damaged] == ["not JSON", "undecodable", "not JSON"]
    assert manager.store.lines("odd", [9]) == {9: encoding.encode(manager.open("odd").messages[-1]).decode()}
    manager.store.repair("odd")
    assert [message["content"] for message in manager.open("odd").messages] == [*texts, "On"]
    assert manager.store.faults("odd") == []


def test_a_fork_copies_no_text(manager: SessionManager, address: str) -> None:
    session = manager.create(session_id="tides")
    session.extend([user(f"message {number}", id=f"m{number}") for number in range(50)])

    child = session.fork("ebb", at=40)

    assert [message["id"] for message in child.messages] == [f"m{number}" for number in range(40)]
    assert rows(address, "select count(*) from forkbook.message") == [(50,)]
    manager.delete("tides")
    manager.purge(manager.purgeable("tides"))
    assert rows(address, "select count(*) from forkbook.message") == [(40,)]
    assert len(manager.open("ebb").messages) == 40


# --- one writer -------------------------------------------------------------------------------------------------------


def test_a_lease_of_a_dead_process_runs_out(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LEASE_S", 0.6)
    one, other = (PostgresStore(Database(address)) for _ in range(2))
    SessionManager(one).create(session_id="tides")
    hold = one.hold("tides")
    leases._renewing.remove(hold)  # as if its process were gone

    with pytest.raises(SessionLocked) as raised:
        other.hold("tides", 0)
    later = other.hold("tides", 10)

    assert raised.value.holder.pid is not None
    assert later.is_held
    session = SessionManager(one).open("tides")
    with pytest.raises(SessionLocked):  # the first one comes back, and learns that another may have written
        one.append("tides", [user("late")], session._known, hold)
    later.release()


def test_a_lease_is_renewed_for_as_long_as_it_is_held(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LEASE_S", 0.6)
    monkeypatch.setattr(leases, "_renewing", leases._Renewing())  # the one before may sleep for longer
    one, other = (PostgresStore(Database(address)) for _ in range(2))
    session = SessionManager(one).create(session_id="tides")

    with session.hold(), pytest.raises(SessionLocked):
        other.hold("tides", 2.0)
    other.hold("tides", 0).release()


# --- a server that goes away ------------------------------------------------------------------------------------------


def test_a_server_that_restarts_costs_a_writer_nothing(address: str) -> None:
    session = SessionManager(address).create(session_id="tides")
    session.append(user("before"))
    with session.hold():
        SERVER.stop("immediate")
        SERVER.start()

        session.append(user("after"))
        child = session.fork("ebb")

    assert said(SessionManager(address).open("tides").messages) == ["before", "after"]
    assert said(child.messages) == ["before", "after"]


def test_a_connection_cut_behind_the_commit_adds_no_second_line(
    manager: SessionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = manager.create(session_id="tides")
    session.append(user("one"))
    _cut_after(monkeypatch, "writing.append")

    session.append(user("two"))

    assert said(manager.open("tides").messages) == ["one", "two"]


def _cut_after(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The first time it is done, the connection is cut behind it."""
    from sessions_lib.store.postgres import sessions, writing

    owner, attribute = {"writing.append": (writing, "append"), "sessions.create": (sessions, "create")}[name]
    done = getattr(owner, attribute)
    cut: list[int] = []

    def once(connection: Any, *arguments: Any) -> Any:
        result = done(connection, *arguments)
        if not cut:
            cut.append(1)
            connection.commit()
            connection.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return result

    monkeypatch.setattr(owner, attribute, once)
