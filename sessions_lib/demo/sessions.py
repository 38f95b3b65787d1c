"""The demo's sessions: made by ``load``, taken away by ``remove``, each marked ``demo: true`` in its metadata.

* Three quest sessions, really played: prompts answered by the offline village through the agent.
* An architecture and its branch (the JWT and OAuth2 pair), written by hand, like the 25 small tagged sessions of the
  last 90 days; their models are called ``sample-…``, and their times and token counts come from a fixed seed.
* A finished trial, whose repeats are sessions, too (``trial``).
* One file that is damaged on purpose, to show what recovery looks like.

``remove`` moves exactly the marked sessions to the trash. A fork that somebody made of one is theirs and stays.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sessions_lib import names, times
from sessions_lib.agent import demo_model
from sessions_lib.agent.agent import Agent
from sessions_lib.agent.providers import DEMO_MODEL
from sessions_lib.demo import trial
from sessions_lib.demo.samples import LARGE, Sample, Turn, named, samples
from sessions_lib.demo.written import at, written
from sessions_lib.messages import encoding
from sessions_lib.messages.content import Message
from sessions_lib.store.manager import SessionManager
from sessions_lib.store.session import Session

MARK = {"demo": True}
DAYS = 90
_WAIT_S = 60.0  # a load takes a second or two, on a busy machine with a slow disk ten
DAY_1 = "I need to get into the Cave of Echoes. Find out what it takes, and get what you can."
DAY_2 = "I got the Silver Key from the mayor's daughter. What now?"
WEST = "Suppose the key doesn't fit. Is there another way in?"


def is_loaded(manager: SessionManager) -> bool:
    """True if a session of the demo is in the folder."""
    return bool(manager.marked("demo"))


def load(manager: SessionManager) -> list[str]:
    """Make the demo's sessions and return their ids, but for the repeats of its trial; ``[]`` if any is there already.

    An id that a session of yours has is never taken: the demo's gets a number. One load at a time: a second one waits
    for the first to end, and finds its sessions.
    """
    with manager.store.alone("demo", _WAIT_S):
        if is_loaded(manager):
            return []
        now = datetime.now(UTC).replace(microsecond=0)
        made = [*_samples(manager, now), _damaged(manager, now), *_auth(manager, now), *_quests(manager, now)]
        made.append(_orders(manager, now))
        trial.make(made[-1], now, MARK)
        return [session.id for session in made]


def remove(manager: SessionManager) -> list[str]:
    """Move the demo's sessions to the trash and return their ids as ``load`` did; all else stays, forks of them too."""
    found = manager.marked("demo")
    repeats = trial.remove(manager.store, found)
    for session_id in found:
        manager.delete(session_id)
    return [session_id for session_id in found if session_id not in repeats]


def _free_id(manager: SessionManager, wanted: str) -> str:
    return names.unique_id(wanted, {session.lower() for session in manager.store.ids()})


def _new(manager: SessionManager, wanted: str, created: datetime, title: str | None, tags: Sequence[str]) -> Session:
    session_id = _free_id(manager, wanted)
    return manager.create(title, tags, session_id, created=times.iso(created), **MARK)


def _fork(manager: SessionManager, parent: Session, wanted: str, at: int | None, title: str) -> Session:
    session = parent.fork(_free_id(manager, wanted), at, title)
    session.update_meta(MARK)
    return session


# --- the quests, played ------------------------------------------------------------------------------------------


def _quests(manager: SessionManager, now: datetime) -> list[Session]:
    days = [now - timedelta(days=2, hours=3), now - timedelta(days=1, hours=2), now - timedelta(hours=1)]
    quest = _new(manager, "quest-1", days[0], "The Cave of Echoes", ["quest"])
    _play(quest, DAY_1, days[0])
    early = len(quest.messages)
    _play(quest, DAY_2, days[1])
    west = _fork(manager, quest, "quest-2", None, "The Cave of Echoes, through the well")
    _play(west, WEST, days[2])
    _play(west, "Buy the rope", days[2] + timedelta(minutes=4))
    careful = _fork(manager, quest, "quest-3", early, "The Cave of Echoes, asking first")
    _play(careful, "Talk to the mayor's daughter", days[2] + timedelta(minutes=20))
    _play(careful, "Buy a sword", days[2] + timedelta(minutes=21))
    return [quest, west, careful]


def _play(session: Session, prompt: str, start: datetime) -> None:
    """Have the village answer in memory, then store its messages as said from ``start`` on."""
    game = Session()
    game.extend(session.messages)
    Agent(session=game, model=DEMO_MODEL, client=demo_model.client(pause_s=0)).chat(prompt)
    said = game.messages[len(session.messages) :]
    moments = (start + timedelta(seconds=2 * number) for number in range(len(said)))
    session.extend({**message, "timestamp": times.iso(moment)} for message, moment in zip(said, moments, strict=False))


# --- written by hand ---------------------------------------------------------------------------------------------


def _auth(manager: SessionManager, now: datetime) -> list[Session]:
    dice = random.Random(7)
    start = now - timedelta(days=4, hours=6)
    first, second = named("auth-design").turns
    design = _new(manager, "auth-design", start, named("auth-design").title, named("auth-design").tags)
    design.extend(written(first, LARGE, start, dice, 0))
    branch = _fork(manager, design, "jwt-branch", None, "jwt_branch")
    later = start + timedelta(minutes=9)
    design.extend(written(second, LARGE, later, dice, 140))
    (refresh,) = named("jwt-branch").turns
    branch.extend(written(refresh, LARGE, later + timedelta(minutes=5), dice, 140))
    return [design, branch]


def _orders(manager: SessionManager, now: datetime) -> Session:
    """The session that the trial starts in."""
    start = now - timedelta(days=3, hours=5)
    sample = named("orders-as-json")
    session = _new(manager, "orders-as-json", start, sample.title, sample.tags)
    session.extend(written(sample.turns[0], sample.model, start, random.Random(11), 0))
    session.update_meta({"model": sample.model})
    return session


def _samples(manager: SessionManager, now: datetime) -> list[Session]:
    dice = random.Random(2026)
    made = []
    unnamed = [sample for sample in samples() if sample.name is None]
    for number, sample in enumerate(unnamed):
        days_ago = DAYS - 1 - (DAYS - 6) * number / (len(unnamed) - 1)
        start = now - timedelta(days=days_ago, minutes=dice.randrange(600))
        made.append(_sample(manager, sample, start, dice))
    return made


def _sample(manager: SessionManager, sample: Sample, start: datetime, dice: random.Random) -> Session:
    base = names.id_from_title(sample.title or "monday-meeting")
    session = _new(manager, base, start, sample.title, sample.tags)
    moment, sent = start, 0
    for turn in sample.turns:
        said = written(turn, sample.model, moment, dice, sent)
        session.extend(said)
        sent += sum(len(str(message.get("content") or "")) for message in said) // 4 + 20
        moment += timedelta(minutes=dice.randrange(2, 12))
    return session


# --- damaged on purpose ------------------------------------------------------------------------------------------


def _damaged(manager: SessionManager, now: datetime) -> Session:
    """A session with a broken line in the middle, a call without a result and a last line that is cut off."""
    start = now - timedelta(days=12)
    session = _new(manager, "crashed-backup", start, "The backup that crashed", ["work", "recovery"])
    call = {"id": "call_1", "type": "function", "function": {"name": "backup", "arguments": '{"target": "nas"}'}}
    dice = random.Random(3)
    opening = written(Turn("Is the backup running?", "Yes, since 03:00. It copies to the NAS."), LARGE, start, dice, 0)
    later = start + timedelta(hours=2)
    asked = at(later, {"role": "user", "content": "Start it again, it hangs."})
    called: Message = {"role": "assistant", "content": None, "tool_calls": [call], "finish_reason": "tool_calls"}
    whole = [*opening, asked, at(later, {**called, "model": LARGE})]
    lines = [encoding.encode(message).decode() for message in whole]
    lines.insert(2, lines[1][:60])  # the power went in the middle of a write, and somebody wrote on
    torn = '{"role":"tool","tool_call_id":"call_1","content":"copied 41 of 9'
    manager.store.put_lines(session.id, [*lines, torn])
    return manager.open(session.id)
