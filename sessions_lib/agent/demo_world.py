"""The offline demo's world: a village by the Cave of Echoes, with the tools ``talk_to`` and ``buy``.

The purse is folded from the session's own messages: what was bought before a fork is spent in the fork too.

Does not keep any state. Who plays in it is ``demo_model``'s business.
"""

from __future__ import annotations

from collections.abc import Sequence

from sessions_lib.agent.tools import History, tool
from sessions_lib.errors import SessionError
from sessions_lib.messages import content, tool_calls
from sessions_lib.messages.content import Message

GOLD = 20
PRICES = {"torch": 8, "rope": 6}
PEOPLE = {
    "elder": "The Cave of Echoes takes two things: a light that the wind cannot blow out, so bring a torch, and the "
    "Silver Key for its door. The mayor's daughter keeps the key.",
    "guard": "The gate to the cave opens at dusk. I let through whoever carries a burning torch. The Silver Key turns "
    "left, against all habit: most people break it turning right.",
    "shop": "A torch is 8 gold, a rope is 6. And if the door will not open: the old well behind the mill comes out "
    "inside the cave. You would need a rope to climb down.",
    "mayor's daughter": "I lend the Silver Key to whoever promises to bring it back. Show me that you have a light, "
    "and it is yours until the new moon.",
}
NOTHING_YET = History()


class Refusal(SessionError):
    """The village says no; the model reads it as the result of its call."""


@tool(effect=False)
def talk_to(npc: str) -> str:
    """Talk to someone in the village (elder, guard, shop, mayor's daughter). Returns what they say."""
    who = person(npc)
    if who is None:
        raise Refusal(f"Nobody called {npc!r} lives here. You can talk to: {', '.join(PEOPLE)}.")
    return PEOPLE[who]


@tool(effect=True)
def buy(item: str, history: History = NOTHING_YET) -> str:
    """Buy an item at the shop (torch, rope). Returns the price and the gold left."""
    wanted = plain(item)
    price = PRICES.get(wanted)
    if price is None:
        raise Refusal(f"The shop has no {item!r}. It sells: {', '.join(PRICES)}.")
    left = purse(history)
    if price > left:
        raise Refusal(f"A {wanted} is {price} gold, and only {left} gold is left.")
    return f"Bought a {wanted} for {price} gold. {left - price} gold left."


TOOLS = (talk_to, buy)


def purse(history: Sequence[Message]) -> int:
    """The gold left after everything that was bought in ``history``."""
    return GOLD - sum(PRICES[item] for item in bought(history))


def bought(history: Sequence[Message]) -> list[str]:
    """What was bought in ``history``, in order: the calls of ``buy`` whose result says so."""
    items = []
    for step in tool_calls.pair(history).steps:
        item = plain(str((tool_calls.arguments(step.call) or {}).get("item", "")))
        if step.call.name == "buy" and item in PRICES and step.result is not None:
            said = content.text(step.result)
            if not step.is_error and said.startswith("Bought"):
                items.append(item)
    return items


def plain(name: str) -> str:
    """``name`` in lower case, with straight apostrophes and without articles."""
    words = name.casefold().replace("\u2019", "'").split()
    return " ".join(word for word in words if word not in ("a", "an", "the", "some"))


def person(name: str) -> str | None:
    """Who is meant by ``name``: a key of ``PEOPLE``, or ``None``."""
    wanted = plain(name)
    others = {"daughter": "mayor's daughter", "mayors daughter": "mayor's daughter", "shopkeeper": "shop"}
    wanted = others.get(wanted, wanted)
    return wanted if wanted in PEOPLE else None
