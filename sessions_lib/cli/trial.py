"""``trial new|run|show|list``: variants × repeats × checks, for a person and for a build.

Does not judge: ``sessions_lib.trials`` does.
"""

from __future__ import annotations

import json as reading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sessions_lib.cli import options, printing
from sessions_lib.errors import SessionError

if TYPE_CHECKING:
    from sessions_lib.store.manager import SessionManager
    from sessions_lib.trials.table import Row, Spread
    from sessions_lib.trials.trial import Trial


_OWN = ".trial.json"  # a trial's file is called by its name and this


@click.group("trial")
@options.folder_of_all
def trial() -> None:
    """Is the better branch better, or was it luck? Try variants several times.

    Example: forkbook trial run short --repeats 20
    """


@trial.command("new")
@options.session_name
@click.option(
    "--at", type=click.IntRange(min=0), metavar="MESSAGES", help="Start after so many messages; else at the end."
)
@click.option("--prompt", "-p", "prompts", multiple=True, metavar="TEXT", help="What is asked; may be repeated.")
@click.option(
    "--variant", "-v", "variants", multiple=True, metavar="NAME[:JSON]",
    help='What differs, of model, base_url, system, temperature, tools, session, at, change.',
)  # fmt: skip
@click.option(
    "--check", "-c", "checks", multiple=True, metavar="JSON|TEXT",
    help='What makes an answer pass: {"regex":"key$"}; a plain text: that it is contained.',
)  # fmt: skip
@click.option("--repeats", "-n", default=10, show_default=True, metavar="N", help="How often each variant answers.")
@click.option("--name", metavar="NAME", help="What it is called; else made of the session's title.")
@options.folder
def new(
    session: str,
    at: int | None,
    prompts: tuple[str, ...],
    variants: tuple[str, ...],
    checks: tuple[str, ...],
    repeats: int,
    name: str | None,
    folder: str | None,
) -> None:
    """Set up a trial that starts in a session; nothing is asked yet.

    Example: forkbook trial new quest-1 -p "What now?" -v base -v 'short:{"system":"Be short."}' -c torch
    """
    from sessions_lib.trials import estimate
    from sessions_lib.trials.trial import Trial

    found = options.opened(folder, session)
    if name is not None and found.store.trial(name) is not None:
        raise SessionError(f"There is a trial {name!r} already. Choose another name.")
    made = Trial(
        found, at, prompts, [_variant(one) for one in variants], [_check(one) for one in checks], repeats, name=name
    )
    made.save()
    printing.data(made.name)
    printing.talk(f"{estimate.sentence(made)} Run it: forkbook trial run {made.name}")


def _variant(text: str) -> Any:
    from sessions_lib.trials.trial import Variant

    name, _, rest = text.partition(":")
    return Variant.of({"name": name, **(_object(rest, f"The variant {name!r}") if rest.strip() else {})})


def _check(text: str) -> Any:
    from sessions_lib.trials import checks

    return checks.checked(_object(text, "A check")) if text.lstrip().startswith("{") else checks.contains(text)


def _object(text: str, what: str) -> dict[str, Any]:
    try:
        value = reading.loads(text)
    except ValueError as error:
        raise SessionError(f"{what} is no JSON: {error}.") from error
    if not isinstance(value, dict):
        raise SessionError(f"{what} is no JSON object.")
    return value


@trial.command("run")
@click.argument("name", metavar="TRIAL|FILE")
@click.option("--repeats", "-n", type=click.IntRange(min=1), metavar="N", help="Have so many of each variant.")
@click.option(
    "--parallel", default=4, show_default=True, type=click.IntRange(1, 64), metavar="N", help="Ask so many at a time."
)
@click.option("--tools", metavar="FILE", help="Offer the @tool functions of this Python file.")
@click.option(
    "--effects", type=click.Choice(["ask", "real", "simulated"]), default="ask", show_default=True,
    help="Tools that change the world: refuse, let them, or answer from the recording.",
)  # fmt: skip
@click.option(
    "--fail-below", type=click.FloatRange(0, 1), metavar="RATE", help="Exit 1 if a variant passes less often."
)
@options.as_json
@options.folder
def run(
    name: str,
    repeats: int | None,
    parallel: int,
    tools: str | None,
    effects: str,
    fail_below: float | None,
    json: bool,
    folder: str | None,
) -> None:
    """Ask what is not answered yet, and say what came of it; Ctrl-C stops, the same command goes on.

    TRIAL|FILE: The name of a trial, its file, or a promptfoo YAML file, of which trials are made.

    Example: forkbook trial run short --repeats 20 --fail-below 0.8
    """
    from sessions_lib.agent.tools import from_file
    from sessions_lib.trials import running, table

    offered = from_file(options.path(tools)) if tools else None
    worst = 1.0
    for one in _named(name, repeats, folder):
        if repeats is not None and repeats != one.repeats:
            one.extend(repeats)
        going = running.start(one, parallel, tools=offered, effects=effects)
        try:
            with printing.bar(len(one.planned()), one.name) as bar:
                for progress in going.follow():
                    bar.update(progress.done - bar.pos)
        except KeyboardInterrupt:
            going.stop()
            going.wait()
            printing.talk(f"Stopped; what was answered is kept. To go on: forkbook trial run {one.name}")
            raise
        rows = table.rows(one)
        _print(one, rows, json)
        worst = min([worst, *((row.rate.rate or 0.0) for row in rows)])
    if fail_below is not None and worst < fail_below:
        raise SessionError(f"A variant passed {worst:.0%} of its repeats, less than {fail_below:.0%}.")


def _named(name: str, repeats: int | None, folder: str | None) -> list[Trial]:
    """The trial ``name``, or those that the file ``name`` is or describes, each with the state it had before.

    A trial's own file names its folder, too, where none is given.
    """
    from sessions_lib.trials.trial import Trial

    path = options.path(name)
    if path.name.endswith(_OWN) and path.is_file():
        return [Trial.load(options.manager(folder or str(path.parent)).store, path.name.removesuffix(_OWN))]
    manager = options.manager(folder)
    if path.suffix.lower() not in (".yaml", ".yml"):
        return [Trial.load(manager.store, name)]
    return [_of_case(manager, path, case, repeats) for case in _cases(path)]


def _cases(path: Path) -> list[Any]:
    from sessions_lib.trials import promptfoo

    return promptfoo.read(path.read_text(encoding="utf-8"))


def _of_case(manager: SessionManager, path: Path, case: Any, repeats: int | None) -> Trial:
    from sessions_lib.redaction import ids
    from sessions_lib.trials.trial import Trial

    name = ids.made_of(f"{path.stem} {case.name}")[:80]
    if manager.store.trial(name) is not None:
        return Trial.load(manager.store, name)
    start = manager.create(f"{path.stem}: {case.name}")
    made = Trial(start, 0, case.prompts, case.variants, case.checks, repeats or 10, name=name)
    made.save()
    return made


@trial.command("copy")
@click.argument("name", metavar="TRIAL")
@click.argument("new_name", metavar="NEW")
@options.folder
def copy(name: str, new_name: str, folder: str | None) -> None:
    """Make the same trial under another name, with no answer yet: to run it again.

    Example: forkbook trial copy short short-next-day
    """
    from sessions_lib.trials.trial import Trial

    made = Trial.load(options.manager(folder).store, name).copy(new_name)
    made.save()
    printing.data(made.name)
    printing.talk(f"{printing.count(made.requests(), 'request')} at least. Run it: forkbook trial run {made.name}")


@trial.command("show")
@click.argument("name", metavar="TRIAL")
@click.option("--promptfoo", is_flag=True, help="Print it as promptfoo's YAML.")
@options.as_json
@options.folder
def show(name: str, promptfoo: bool, json: bool, folder: str | None) -> None:
    """Say what came of a trial so far.

    Example: forkbook trial show short
    """
    from sessions_lib.trials import promptfoo as writing
    from sessions_lib.trials import table
    from sessions_lib.trials.trial import Trial

    found = Trial.load(options.manager(folder).store, name)
    if promptfoo:
        printing.data(printing.plain(writing.write(found).rstrip()))
        return
    _print(found, table.rows(found), json)


@trial.command("list")
@options.as_json
@options.folder
def list_trials(json: bool, folder: str | None) -> None:
    """List the trials.

    Example: forkbook trial list
    """
    from sessions_lib.trials.trial import Trial

    store = options.manager(folder).store
    found = [one for name in store.trials() if (one := Trial.load(store, name)).is_left]
    for one in found if json else ():
        planned = len(one.planned())
        printing.record({"trial": one.name, "session": one.session_id, "answers": len(one.results), "planned": planned})
    if found and not json:
        rows = [
            (one.name, one.session_id, _variants(one), f"{len(one.results)} of {len(one.planned())}") for one in found
        ]
        printing.table(("TRIAL", "SESSION", "VARIANTS", "ANSWERS"), rows, cut=(0, 1, 2), right=(3,))
    printing.talk(f"{printing.count(len(found), 'trial')} in {store.where}")


def _variants(trial: Trial) -> str:
    return ", ".join(variant.name for variant in trial.variants if not variant.is_noise)


def _as_record(trial: Trial, row: Row) -> dict[str, Any]:
    """One variant for a program; tokens, seconds and cost are the median of its repeats, ``null`` if unknown."""
    return {
        "trial": trial.name,
        "variant": row.variant.name,
        "noise": row.variant.is_noise,
        "runs": row.rate.runs,
        "passed": row.rate.passed,
        "rate": row.rate.rate,
        "low": row.rate.low,
        "high": row.rate.high,
        "cost_usd": row.dollars.median,
        "tokens": row.tokens.median,
        "seconds": row.seconds.median,
        "failed": row.failed,
        "unknown": row.unknown,
    }


def _print(trial: Trial, rows: list[Row], json: bool) -> None:
    from sessions_lib.trials import running, table

    if json:
        for row in rows:
            printing.record(_as_record(trial, row))
        return
    printing.table(
        ("VARIANT", "PASSED", "95 %", "TOKENS", "SECONDS", "FAILED", "NOT JUDGED"),
        [
            (
                f"{row.variant.name} (noise)" if row.variant.is_noise else row.variant.name,
                table.share(row.rate), interval(row), _spread(row.tokens, 0), _spread(row.seconds, 1),
                str(row.failed or ""), str(row.unknown or ""),
            )
            for row in rows
        ],
        cut=(0,),
        right=(1, 2, 3, 4, 5, 6),
    )  # fmt: skip
    for sentence in table.verdicts(rows):
        printing.talk(sentence)
    if trial.effects == "simulated":
        printing.talk(running.SIMULATED)
    for result in [one for row in rows for one in row.results if one.error][:3]:
        printing.talk(f"{result.session} failed: {result.error}")


def interval(row: Row) -> str:
    """``49 to 94 %``, or ``-`` without any run."""
    low, high = row.rate.low, row.rate.high
    return "-" if low is None or high is None else f"{low * 100:.0f} to {high * 100:.0f} %"


def _spread(spread: Spread, digits: int) -> str:
    if spread.median is None:
        return "-"
    numbers = [f"{value or 0:,.{digits}f}" for value in (spread.median, spread.least, spread.most)]
    return f"{numbers[0]} ({numbers[1]}-{numbers[2]})"
