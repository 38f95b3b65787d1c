"""Trials as promptfoo's YAML, and back: providers are variants, each prompt with each test is one trial.

The part that means the same on both sides: providers of OpenAI's kind with their settings, prompts with
``{{variables}}``, and the assertions that are checks here. The rest (``javascript``, files) is refused by name.

Does not run anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sessions_lib.errors import SessionError
from sessions_lib.trials import checks as checking
from sessions_lib.trials.checks import Check
from sessions_lib.trials.trial import Trial, Variant

_ASSERTIONS: dict[str, Callable[[Any], Check]] = {
    "contains": lambda value: checking.regex(f"(?s){re.escape(str(value))}"),
    "icontains": lambda value: checking.contains(str(value)),
    "not-contains": lambda value: checking.regex(rf"(?s)\A(?!.*{re.escape(str(value))})"),
    "not-icontains": lambda value: checking.contains_not(str(value)),
    "regex": lambda value: checking.regex(str(value)),
    "equals": lambda value: checking.equals(str(value)),
    "is-json": lambda value: checking.is_json(value if isinstance(value, Mapping) else None),
    "llm-rubric": lambda value: checking.judge(str(value)),
}
_LIMITS = {"latency": ("seconds", 1000), "cost": ("dollars", 1)}


@dataclass(frozen=True, slots=True)
class Case:
    """One prompt with the variables of one test: what a trial is made of."""

    name: str
    prompts: list[str]
    checks: list[Check]
    variants: list[Variant]


def read(text: str) -> list[Case]:
    """The trials that ``text`` describes; ``SessionError`` names what cannot be one."""
    import yaml

    try:
        given = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SessionError(f"This is no YAML: {error}") from error
    if not isinstance(given, Mapping) or not given.get("prompts") or not given.get("providers"):
        raise SessionError("This is no promptfoo configuration: it needs prompts and providers.")
    variants = [_variant(one) for one in _listed(given["providers"], "providers")]
    shared = given.get("defaultTest") or {}
    tests = _listed(given.get("tests") or [{}], "tests")
    made = []
    for number, prompt in enumerate(_listed(given["prompts"], "prompts"), 1):
        raw = prompt.get("raw") if isinstance(prompt, Mapping) else prompt
        if not isinstance(raw, str) or raw.startswith("file://"):
            raise SessionError("A prompt has to stand in the file itself, as a text; files are not read.")
        for at, test in enumerate(tests, 1):
            values = {**(shared.get("vars") or {}), **(test.get("vars") or {})}
            asserted = [*(shared.get("assert") or []), *(test.get("assert") or [])]
            label = str(test.get("description") or f"test {at}")
            name = label if len(_listed(given["prompts"], "prompts")) == 1 else f"{label}, prompt {number}"
            made.append(Case(name, [_filled(raw, values)], [_check(one) for one in asserted], variants))
    return made


def _listed(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise SessionError(f"{what} is no list; files and folders of {what} are not read.")
    return value


def _variant(provider: Any) -> Variant:
    given: Any = {"id": provider} if isinstance(provider, str) else provider
    if isinstance(given, Mapping) and len(given) == 1 and "id" not in given:
        ((identity, inside),) = given.items()
        given = {"id": identity, **(inside if isinstance(inside, Mapping) else {})}
    if not isinstance(given, Mapping) or not isinstance(given.get("id"), str):
        raise SessionError(f"{str(provider)[:60]!r} is no provider.")
    kind, _, rest = given["id"].partition(":")
    if kind not in ("openai", "ollama") or given["id"].startswith("file:"):
        raise SessionError(f"The provider {given['id']!r} is of another kind; openai:… and ollama:… are known.")
    model = rest.rpartition(":")[2] if rest.startswith(("chat:", "responses:", "completion:")) else rest
    config = given.get("config") or {}
    address = config.get("apiBaseUrl") or ("http://127.0.0.1:11434/v1" if kind == "ollama" else None)
    return Variant(
        str(given.get("label") or given["id"]), model=model, base_url=address, temperature=config.get("temperature")
    )


def _filled(prompt: str, values: Mapping[str, Any]) -> str:
    from jinja2 import StrictUndefined, TemplateError
    from jinja2.sandbox import SandboxedEnvironment

    try:
        filled: str = SandboxedEnvironment(undefined=StrictUndefined).from_string(prompt).render(**values)
    except TemplateError as error:
        raise SessionError(f"The prompt {prompt[:40]!r} cannot be filled in: {error}.") from error
    return filled


def _check(assertion: Any) -> Check:
    kind = assertion.get("type") if isinstance(assertion, Mapping) else None
    if kind in _LIMITS and isinstance(assertion.get("threshold"), int | float):
        unit, factor = _LIMITS[kind]
        return checking.at_most(**{unit: assertion["threshold"] / factor})
    if kind not in _ASSERTIONS:
        known = ", ".join(sorted((*_ASSERTIONS, *_LIMITS)))
        raise SessionError(f"The assertion {kind!r} cannot be checked here; these can: {known}.")
    return _ASSERTIONS[kind](assertion.get("value"))


def write(trial: Trial) -> str:
    """``trial`` as promptfoo's YAML; ``SessionError`` names what it has no word for."""
    import yaml

    if trial.at:
        raise SessionError("promptfoo begins with a prompt: a trial that starts inside a session has no form there.")
    return str(
        yaml.safe_dump(
            {
                "description": trial.name,
                "prompts": trial.prompts,
                "providers": [_provider(variant) for variant in trial.variants if not variant.is_noise],
                "tests": [{"assert": [_assertion(check) for check in trial.checks]}],
            },
            sort_keys=False,
            allow_unicode=True,
        )
    )


def _provider(variant: Variant) -> dict[str, Any]:
    if variant.model is None or variant.system is not None or variant.change or variant.tools:
        raise SessionError(f"The variant {variant.name!r} is more than a model: promptfoo has no word for it.")
    config = {"apiBaseUrl": variant.base_url, "temperature": variant.temperature}
    given = {key: value for key, value in config.items() if value is not None}
    return {"id": f"openai:{variant.model}", "label": variant.name, **({"config": given} if given else {})}


def _assertion(check: Check) -> dict[str, Any]:
    kind, value = next(iter(check.items()))
    words = {"contains": "icontains", "contains_not": "not-icontains", "regex": "regex", "equals": "equals"}
    if kind in words:
        return {"type": words[kind], "value": value}
    if kind == "json":
        return {"type": "is-json", **({"value": dict(value)} if isinstance(value, Mapping) else {})}
    if kind == "judge":
        return {"type": "llm-rubric", "value": value["rubric"]}
    if kind == "at_most" and set(value) <= {"seconds", "dollars"} and len(value) == 1:
        ((unit, limit),) = value.items()
        word, factor = next((word, factor) for word, (named, factor) in _LIMITS.items() if named == unit)
        return {"type": word, "threshold": limit * factor}
    raise SessionError(f"The check {checking.name_of(check)!r} has no form in promptfoo.")
