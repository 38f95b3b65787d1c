"""The demo's finished trial: does an example in the system prompt make a small model keep to JSON?

Its answers are written by hand (``trial.json``), like the demo's small sessions; whether they pass, what they took and
what can be told apart is counted from them, as of any trial.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from sessions_lib import names, prices, times
from sessions_lib.demo.samples import Turn
from sessions_lib.demo.written import written
from sessions_lib.messages import encoding
from sessions_lib.store.records import NewSession
from sessions_lib.store.session import Session
from sessions_lib.store.store import SessionStore
from sessions_lib.trials import Trial, Variant, checks
from sessions_lib.trials.trial import TAG

NAME = "orders-as-json"
MODEL = "sample-small"


@cache
def _data() -> dict[str, Any]:
    read: dict[str, Any] = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes())
    return read


def make(session: Session, now: datetime, mark: Mapping[str, Any]) -> None:
    """Make the trial, which starts at the end of ``session``, and its repeats; ``mark`` joins their metadata."""
    store, data = session.store, _data()
    ways = {way["name"]: way for way in data["variants"]}
    variants = [
        Variant(name, system=way.get("system"), temperature=way.get("temperature"))
        for name, way in ways.items()
        if name != "as it is again"
    ]
    trial = Trial(
        session,
        prompts=[data["prompt"]],
        variants=variants,
        checks=[checks.is_json(data["schema"]), checks.contains("Ember")],
        name=_free_name(store),
    )
    start, dice = now - timedelta(days=3, hours=4), random.Random(5)
    trial.created = times.iso(start)
    made = []
    for number, (variant, repeat) in enumerate(trial.planned()):
        turn = Turn(data["prompt"], ways[variant.name]["answers"][repeat - 1])
        said = written(turn, MODEL, start + timedelta(seconds=number), dice, 140)
        session_id = trial.session_of(variant, repeat)
        meta = {
            "id": session_id,
            "title": f"{trial.name} · {variant.name} · {repeat}",
            "created": times.iso(start),
            "forked_from": {"session": session.id, "messages": trial.at, "message_id": session.messages[-1]["id"]},
            "trial": {"name": trial.name, "variant": variant.name, "repeat": repeat},
            "tags": [f"{TAG}{trial.name}"],
            "model": MODEL,
            **variant.settings,
            **mark,
        }
        made.append(NewSession(session_id, meta, encoding.encode_lines([*session.messages, *said])))
        trial.results[session_id] = trial.result_of(variant, repeat, said, prices.of(said, meta))
    store.create_many(made)
    trial.save()


def remove(store: SessionStore, session_ids: Iterable[str]) -> set[str]:
    """Take the trial away whose repeats are among ``session_ids``, and say which are."""
    metas = store.metas()
    names_of = {one: of["name"] for one in session_ids if isinstance(of := metas[one].values.get("trial"), Mapping)}
    for name in set(store.trials()) & set(names_of.values()):
        store.put_trial(name, None)
    return set(names_of)


def _free_name(store: SessionStore) -> str:
    """The trial's name: with a number behind it if somebody's own trial, or its repeats, have it."""
    taken = {session_id.split(".")[0].lower() for session_id in store.ids() if "." in session_id}
    taken |= {name.lower() for name in store.trials() if Trial.load(store, name).is_left}
    return names.unique_id(NAME, taken)
