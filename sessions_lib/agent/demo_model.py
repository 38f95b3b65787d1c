"""The offline demo's model: a script that plays in the village and speaks Chat Completions.

It streams, calls tools and reports usage through the real ``openai`` client: only the transport is inside this process.
Its answers depend on the messages of the request and on nothing else, so a resumed or forked session goes on from where
it was, and prompts may come in any order. Whatever is not about the village gets an honest "I am the offline demo".

Does not keep any state, and never reaches a network.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sessions_lib import names
from sessions_lib.agent.demo_world import GOLD, PEOPLE, PRICES, bought, person, plain, purse
from sessions_lib.messages import content, tool_calls
from sessions_lib.messages.content import Message

if TYPE_CHECKING:
    from openai import OpenAI

PAUSE_S = 0.012  # between two words, so that a person sees the answer arrive


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model does next: say ``text``, or call one tool."""

    text: str = ""
    tool: str = ""
    arguments: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class _Scene:
    """What the model knows at this point of the conversation, folded from the messages it was sent."""

    prompt: str
    tried: Mapping[tuple[str, str], str]  # (tool, argument) -> result, since the prompt
    heard: frozenset[str]  # who has spoken in the whole conversation
    bag: tuple[str, ...]
    gold: int
    offered: frozenset[str]

    def says(self, *words: str) -> bool:
        return all(re.search(word, self.prompt) for word in words)

    def ask(self, who: str) -> Reply | None:
        """Call ``talk_to`` unless that was done since the prompt, or cannot be."""
        if "talk_to" not in self.offered or ("talk_to", who) in self.tried:
            return None
        return Reply(tool="talk_to", arguments={"npc": who})

    def get(self, item: str) -> Reply | None:
        """Call ``buy`` unless that was done since the prompt, cannot be, or the item is in the bag."""
        if "buy" not in self.offered or item in self.bag or ("buy", item) in self.tried:
            return None
        return Reply(tool="buy", arguments={"item": item})

    @property
    def has_light(self) -> bool:
        return "torch" in self.bag

    def carries(self) -> str:
        return " and ".join(f"a {item}" for item in dict.fromkeys(self.bag)) or "nothing yet"


def reply(messages: Sequence[Message], offered: Sequence[str]) -> Reply:
    """The model's next move for these messages; ``offered`` are the names of the tools in the request."""
    last = next((i for i in range(len(messages) - 1, -1, -1) if messages[i].get("role") == "user"), None)
    if last is None:
        return Reply(_honest(""))
    prompt = content.text(messages[last])
    steps = [step for step in tool_calls.pair(messages).steps if step.result is not None]
    tried: dict[tuple[str, str], str] = {}
    heard = set()
    for step in steps:
        argument = next(iter((tool_calls.arguments(step.call) or {"": ""}).values()), "")
        said = content.text(step.result or {})
        if step.call.message > last:
            tried[step.call.name, str(argument)] = said
        if step.call.name == "talk_to" and (who := person(str(argument))) and said == PEOPLE[who]:
            heard.add(who)
    scene = _Scene(plain(prompt), tried, frozenset(heard), tuple(bought(messages)), purse(messages), frozenset(offered))
    for matches, play in _SCRIPT:
        if matches(scene):
            return play(scene)
    return Reply(_honest(prompt))


def _another_way(scene: _Scene) -> Reply:
    if "shop" not in scene.heard and (step := scene.ask("shop")):
        return step
    rope = (
        "You have a rope already."
        if "rope" in scene.bag
        else f"A rope costs {PRICES['rope']} gold and you have {scene.gold}: say “Buy the rope” if you want it."
        if scene.gold >= PRICES["rope"]
        else f"A rope costs {PRICES['rope']} gold, and you have only {scene.gold}."
    )
    light = (
        "Your torch will do for light." if scene.has_light else "You would still need a torch: it is dark down there."
    )
    return Reply(
        "Yes, there is another way in. The shopkeeper speaks of **the old well behind the mill**: it comes out inside "
        f"the cave, so the key would not matter.\n\n- {rope}\n- {light}\n"
        "- Keep the Silver Key anyway, and bring it back."
    )


def _has_key(scene: _Scene) -> Reply:
    if "guard" not in scene.heard and (step := scene.ask("guard")):
        return step
    if scene.has_light:
        first = "You have everything: the torch and the Silver Key."
    else:
        first = f"You have the key, but no light. A torch costs {PRICES['torch']} gold and you have {scene.gold}."
    return Reply(
        f"{first} Now:\n\n1. Go to the gate **at dusk**; the guard lets you through with a burning torch.\n"
        "2. Turn the key **to the left**. Turning right breaks it.\n"
        "3. Bring the key back to the mayor's daughter before the new moon."
    )


def _cave(scene: _Scene) -> Reply:
    if "elder" not in scene.heard and (step := scene.ask("elder")):
        return step
    if "elder" in scene.heard and scene.gold >= PRICES["torch"] and (step := scene.get("torch")):
        return step
    if "elder" not in scene.heard:
        return Reply("I would ask the elder what the Cave of Echoes takes, but I was given no tool to talk to anyone.")
    if not scene.has_light:
        return Reply(
            f"The Cave of Echoes takes a torch and the Silver Key. I could not get the torch: it costs "
            f"{PRICES['torch']} gold, and you have {scene.gold}. The mayor's daughter keeps the key."
        )
    return Reply(
        "The Cave of Echoes takes two things: **a torch** and **the Silver Key**.\n\n"
        f"- The torch is in your bag: {PRICES['torch']} gold at the shop, {scene.gold} gold left.\n"
        "- The key is with the mayor's daughter. She lends it to whoever shows her a light, so go and see her yourself."
    )


def _purchase(scene: _Scene) -> Reply:
    item = next((item for item in PRICES if item in scene.prompt), None)
    if item is None:
        found = re.search(r"\b(?:buy|get me|purchase)\s+(?:an?\s+|the\s+|some\s+)?([\w'-]+)", scene.prompt)
        item = found.group(1) if found else "nothing"
    said = scene.tried.get(("buy", item))
    if said is not None:
        return Reply(f"{said} You carry {scene.carries()}.")
    if item in scene.bag:
        return Reply(f"You have a {item} already, so I bought no second one. {scene.gold} gold left.")
    return scene.get(item) or Reply(f"I cannot buy a {item}: I was given no tool to buy with.")


def _talk(scene: _Scene) -> Reply:
    who = next((who for who in ("mayor's daughter", *PEOPLE) if who in scene.prompt), None)
    if who is None:
        who = "mayor's daughter" if "daughter" in scene.prompt else ""
    if not who:
        found = re.search(r"\b(?:talk to|speak to|ask)\s+(?:the\s+)?([\w'-]+)", scene.prompt)
        who = found.group(1) if found else "nobody"
    said = scene.tried.get(("talk_to", who))
    if said is not None:
        return Reply(f"The {who} says: “{said}”" if person(who) else said)
    return scene.ask(who) or Reply(f"I cannot ask the {who}: I was given no tool to talk to anyone.")


def _counts(scene: _Scene) -> Reply:
    return Reply(f"You carry {scene.carries()}, and {scene.gold} of {GOLD} gold are left.")


_SCRIPT: tuple[tuple[Callable[[_Scene], bool], Callable[[_Scene], Reply]], ...] = (
    (lambda s: s.says(r"another way|other way|doesn't fit|does not fit|different way|without .*key"), _another_way),
    (lambda s: s.says(r"\b(buy|purchase|get me)\b") and not s.says(r"\bcave\b"), _purchase),
    (lambda s: s.says(r"\b(talk to|speak to|ask)\b"), _talk),
    (lambda s: s.says(r"\bkey\b", r"\b(got|have|has|now|found)\b"), _has_key),
    (lambda s: s.says(r"how much|purse|gold|inventory|carry|in my bag"), _counts),
    (lambda s: s.says(r"\bcave\b|\bechoes\b|\bkey\b"), _cave),
)


def _honest(prompt: str) -> str:
    asked = f"I cannot answer “{names.one_line(prompt, 70)}”: " if prompt.strip() else ""
    return (
        f"{asked}I am the offline demo, a script and not a language model. I know the Cave of Echoes and the village "
        "around it. Try:\n\n"
        "- I need to get into the Cave of Echoes. Find out what it takes, and get what you can.\n"
        "- I got the Silver Key from the mayor's daughter. What now?\n"
        "- Suppose the key doesn't fit. Is there another way in?\n\n"
        "For everything else, choose a real model: OpenAI, Ollama, LM Studio, vLLM, or any address that speaks Chat "
        "Completions."
    )


# --- its transport -----------------------------------------------------------------------------------------------


def client(pause_s: float = PAUSE_S) -> OpenAI:
    """The real ``openai`` client, answered by the village inside this process; ``pause_s`` seconds between words."""
    import httpx2
    from openai import OpenAI

    class Transport(httpx2.BaseTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            if request.url.path.endswith("/models"):
                return httpx2.Response(200, json={"object": "list", "data": [{"id": "demo", "object": "model"}]})
            if not request.url.path.endswith("/chat/completions"):
                return httpx2.Response(404, json={"error": {"message": "The demo only answers chat completions."}})
            asked = json.loads(request.read())
            headers = {"content-type": "text/event-stream"}
            return httpx2.Response(200, headers=headers, stream=_Events(asked))

    class _Events(httpx2.SyncByteStream):
        def __init__(self, asked: dict[str, Any]) -> None:
            self.asked = asked

        def __iter__(self) -> Iterator[bytes]:
            for number, chunk in enumerate(chunks(self.asked)):
                if number and pause_s:
                    time.sleep(pause_s)
                yield b"data: " + json.dumps(chunk).encode() + b"\n\n"
            yield b"data: [DONE]\n\n"

    transport = httpx2.Client(transport=Transport())
    return OpenAI(api_key="demo", base_url="http://village.invalid/v1", http_client=transport, max_retries=0)


def chunks(asked: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The chunks that answer a Chat Completions request: role, words or a call, the finish, the usage."""
    messages = asked.get("messages") or []
    offered = [item["function"]["name"] for item in asked.get("tools") or []]
    made = reply(messages, offered)
    base = {"id": "chatcmpl-demo", "object": "chat.completion.chunk", "created": 0, "model": asked.get("model")}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    if made.tool:
        number = sum(len(tool_calls.calls_of(message)) for message in messages) + 1
        arguments = json.dumps(made.arguments)
        function = {"name": made.tool, "arguments": ""}
        yield chunk({"tool_calls": [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]})
        yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]})
        yield chunk({}, "tool_calls")
        written = _tokens(made.tool) + _tokens(arguments)
    else:
        for word in re.findall(r"\S+\s*|\s+", made.text):
            yield chunk({"content": word})
        yield chunk({}, "stop")
        written = _tokens(made.text)
    sent = sum(_tokens(content.searchable(message)) + 4 for message in messages) + 40 * len(offered)
    usage = {"prompt_tokens": sent, "completion_tokens": written, "total_tokens": sent + written}
    yield {**base, "choices": [], "usage": usage}


def _tokens(text: str) -> int:
    """How many tokens the village counts: words and signs."""
    return len(re.findall(r"\w+|[^\w\s]", text))
