"""Checks: what makes a repeat of a trial pass.

Each is an object with one key, as it stands in the trial's file (``{"contains": "key"}``), and a function here that
makes it. A check looks at a ``Run``: the final answer, or all that was said on the way.

Does not ask a model and does not wait for a person: ``judge`` and ``pick`` are answered elsewhere, and unknown until.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sessions_lib.errors import SessionError
from sessions_lib.messages import content, tool_calls, usage
from sessions_lib.messages.content import Message

Check = Mapping[str, Any]
Verdict = bool | float | str | None
ASKED = ("judge", "pick")  # of a model, of a person


@dataclass(frozen=True, slots=True)
class Run:
    """One repeat: the messages it added, and what it spent; what is unknown is ``None``."""

    messages: Sequence[Message]
    tokens: int | None = None
    seconds: float | None = None
    dollars: float | None = None

    @property
    def answer(self) -> str:
        """The text of the last answer, ``""`` if there is none."""
        answers = [message for message in self.messages if message.get("role") == "assistant"]
        return content.text(answers[-1]) if answers else ""

    @property
    def calls(self) -> list[tool_calls.Call]:
        """The tool calls, in order."""
        return [step.call for step in tool_calls.pair(list(self.messages)).steps]

    @property
    def failures(self) -> int:
        """How many tool calls failed or got no result."""
        steps = tool_calls.pair(list(self.messages)).steps
        return sum(step.result is None or bool(step.result.get("is_error")) for step in steps)


def run_of(messages: Sequence[Message], dollars: float | None = None) -> Run:
    """The run that ``messages`` are."""
    spent = usage.total(messages)
    timed = [value for message in messages if isinstance(value := message.get("duration_ms"), int | float)]
    return Run(messages, spent.total, sum(timed) / 1000 if timed else None, dollars)


# ---------------------------------------------------------------- making them


def contains(text: str) -> Check:
    """The answer contains ``text``, upper and lower case alike."""
    return {"contains": text}


def contains_not(text: str) -> Check:
    """The answer does not contain ``text``."""
    return {"contains_not": text}


def regex(pattern: str) -> Check:
    """``pattern`` is found in the answer; ``SessionError`` if it is no pattern."""
    return checked({"regex": pattern})


def equals(text: str) -> Check:
    """The answer is ``text``, but for blanks around it."""
    return {"equals": text}


def is_json(schema: Mapping[str, Any] | None = None) -> Check:
    """The answer is JSON, and fits the JSON Schema ``schema`` if there is one."""
    return checked({"json": dict(schema) if schema is not None else True})


def called(tool: str, **arguments: Any) -> Check:
    """The tool was called, once at least with these ``arguments``."""
    return {"called": {"tool": tool, "with": arguments}}


def no_tool_failed() -> Check:
    """Every tool call has a result that is no error."""
    return {"no_tool_failed": True}


def at_most(*, tokens: int | None = None, seconds: float | None = None, dollars: float | None = None) -> Check:
    """It took no more than that; where it is unknown what it took, so is whether it passed."""
    given = {"tokens": tokens, "seconds": seconds, "dollars": dollars}
    return checked({"at_most": {name: limit for name, limit in given.items() if limit is not None}})


def function(path: str) -> Check:
    """The function of a Python file says so: ``checks.py:is_short``; it takes a ``Run`` and gives a bool, a score from
    0 to 1 (0.5 passes), or a text that says why it failed (``""`` passes)."""
    return {"python": path}


def judge(rubric: str, model: str | None = None, base_url: str | None = None) -> Check:
    """A model says whether the answer meets ``rubric``; without a ``model`` that of the session."""
    return checked({"judge": {"rubric": rubric, "model": model, "base_url": base_url}})


def picked() -> Check:
    """A person says so, without knowing the variant."""
    return {"pick": True}


def checked(check: Any) -> Check:
    """``check`` if it is one, with sensible values; ``SessionError`` says what is wrong with it."""
    if not isinstance(check, Mapping) or len(check) != 1 or next(iter(check)) not in (*_CHECKS, *ASKED):
        known = ", ".join((*_CHECKS, *ASKED))
        raise SessionError(f"{json.dumps(check, default=str)[:80]} is no check. A check has one of the keys {known}.")
    kind, value = next(iter(check.items()))
    if kind in ("contains", "contains_not", "equals", "regex", "python") and not isinstance(value, str):
        raise SessionError(f"The check {kind!r} wants a text.")
    if kind == "regex":
        try:
            re.compile(value)
        except re.error as error:
            raise SessionError(f"{value!r} is no regular expression: {error}.") from error
    if kind == "at_most" and not (isinstance(value, Mapping) and value and set(value) <= _LIMITS):
        raise SessionError("The check 'at_most' wants tokens, seconds or dollars.")
    if kind == "called" and not (isinstance(value, Mapping) and isinstance(value.get("tool"), str)):
        raise SessionError("The check 'called' wants the name of a tool.")
    if kind == "judge" and not (isinstance(value, Mapping) and str(value.get("rubric") or "").strip()):
        raise SessionError("The check 'judge' wants a rubric: what a good answer is.")
    if kind == "json" and isinstance(value, Mapping):
        import jsonschema

        try:
            jsonschema.validators.validator_for(value).check_schema(value)
        except jsonschema.SchemaError as error:
            raise SessionError(f"The schema of the check 'json' is none: {error.message}.") from error
    return dict(check)


_LIMITS = {"tokens", "seconds", "dollars"}


def name_of(check: Check) -> str:
    """What a person reads for ``check``: ``contains “key”``."""
    kind, value = next(iter(check.items()))
    if kind == "at_most":
        return ", ".join(f"at most {limit:g} {unit}" for unit, limit in value.items())
    if kind == "called":
        return f"{value['tool']} called" + (f" with {json.dumps(value['with'])}" if value.get("with") else "")
    if kind == "judge":
        return f"judge: {value['rubric']}"
    named = {"json": "JSON", "no_tool_failed": "no tool failed", "pick": "picked", "contains_not": "does not contain"}
    name = named.get(kind, kind)
    return (
        f"{name} “{value}”"
        if isinstance(value, str)
        else name + (" of the schema" if isinstance(value, Mapping) else "")
    )


# ---------------------------------------------------------------- looking


def passes(verdict: Verdict) -> bool | None:
    """Whether what a check said means that it passed; ``None`` if it does not know."""
    if verdict is None or isinstance(verdict, bool):
        return verdict
    return verdict == "" if isinstance(verdict, str) else verdict >= 0.5


def look(check: Check, run: Run) -> Verdict:
    """What ``check`` says of ``run``: see ``function``; ``None`` if that cannot be known (yet).

    ``SessionError`` if a function of one's own cannot be loaded or fails.
    """
    kind, value = next(iter(check.items()))
    return None if kind in ASKED else _CHECKS[kind](value, run)


def _is_json(schema: Any, run: Run) -> Verdict:
    text = re.sub(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", r"\1", run.answer, flags=re.DOTALL)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"no JSON: {error}"
    if not isinstance(schema, Mapping):
        return True
    import jsonschema

    fault = jsonschema.exceptions.best_match(jsonschema.validators.validator_for(schema)(schema).iter_errors(value))
    return "" if fault is None else f"{fault.json_path}: {fault.message}"[:300]


def _called(wanted: Mapping[str, Any], run: Run) -> Verdict:
    arguments = [tool_calls.arguments(call) or {} for call in run.calls if call.name == wanted["tool"]]
    asked = wanted.get("with") or {}
    return any(all(key in given and given[key] == value for key, value in asked.items()) for given in arguments)


def _at_most(limits: Mapping[str, float], run: Run) -> Verdict:
    spent = {"tokens": run.tokens, "seconds": run.seconds, "dollars": run.dollars}
    known = [value <= limit for unit, limit in limits.items() if (value := spent[unit]) is not None]
    if not all(known):
        return False
    return True if len(known) == len(limits) else None


def _python(path: str, run: Run) -> Verdict:
    try:
        verdict = _function_of(path)(run)
    except SessionError:
        raise
    except Exception as error:
        raise SessionError(f"The check {path} failed: {type(error).__name__}: {error}.") from error
    if not isinstance(verdict, bool | int | float | str):
        raise SessionError(
            f"The check {path} gave {type(verdict).__name__}; it has to give a bool, a number or a text."
        )
    return verdict


def _function_of(path: str) -> Callable[[Run], Any]:
    name, _, attribute = path.rpartition(":")
    file = Path(name).expanduser()
    spec = importlib.util.spec_from_file_location(f"forkbook_checks_{file.stem}", file)
    if not name or spec is None or spec.loader is None or not file.is_file():
        raise SessionError(f"There is no file of checks at {name or path}. Write it as checks.py:name_of_the_function.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, attribute, None)
    if not callable(found):
        raise SessionError(f"{name} has no function {attribute!r}.")
    checking: Callable[[Run], Any] = found
    return checking


_CHECKS: dict[str, Callable[[Any, Run], Verdict]] = {
    "contains": lambda text, run: text.casefold() in run.answer.casefold(),
    "contains_not": lambda text, run: text.casefold() not in run.answer.casefold(),
    "regex": lambda pattern, run: re.search(pattern, run.answer) is not None,
    "equals": lambda text, run: run.answer.strip() == text.strip(),
    "json": _is_json,
    "called": _called,
    "no_tool_failed": lambda _, run: run.failures == 0,
    "at_most": _at_most,
    "python": _python,
}
