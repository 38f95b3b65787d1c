"""``chat``: talk to an agent in a session, in a terminal or a script.

The answer goes to standard output, everything else to standard error. Ctrl-C and Ctrl-D end it; what was said is in the
session's file by then, so nothing has to be saved.

Does not know how a prompt is answered: it shows the events of ``Agent.stream``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from sessions_lib.cli import look, options, printing
from sessions_lib.cli.options import Folder
from sessions_lib.errors import ProviderError, SessionError, SessionLocked

if TYPE_CHECKING:
    from sessions_lib.agent import Agent
    from sessions_lib.events import Event, Finished
    from sessions_lib.session import Session


def chat(
    session: Annotated[
        str | None, typer.Argument(metavar="[SESSION]", help="Go on in this one; without it a new one is started.")
    ] = None,
    named: Annotated[
        str | None, typer.Option("--session", "-s", metavar="SESSION", help="The same, as an option.")
    ] = None,
    once: Annotated[
        str | None, typer.Option("--once", metavar="PROMPT", help="Answer this one prompt and end.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="NAME", help="The model; else $OPENAI_MODEL.")
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option("--base-url", metavar="URL", help="Any Chat Completions address; else $OPENAI_BASE_URL."),
    ] = None,
    tools: Annotated[
        str | None, typer.Option("--tools", metavar="FILE", help="Offer the @tool functions of this Python file.")
    ] = None,
    folder: Folder = None,
) -> None:
    """Chat in a session, or in a new one.

    The key comes from $OPENAI_API_KEY; without any endpoint the offline demo answers.

    Example: forkbook chat quest-1 --once "What now?"
    """
    if session is not None and named is not None:
        raise typer.BadParameter("Give the session once: as an argument or with --session.")
    agent = _agent(folder, named if session is None else session, model, base_url, tools)
    _greet(agent)
    if once is not None:
        _answer(agent, once)
    elif not _talk(agent):
        raise SessionError("The last prompt has no answer. To ask it again: forkbook chat, then an empty line.")


def _agent(folder: str | None, name: str | None, model: str | None, base_url: str | None, tools: str | None) -> Agent:
    from sessions_lib.agent import Agent
    from sessions_lib.tools import from_file

    offered = from_file(options.path(tools)) if tools else None
    found = options.manager(folder)
    chosen = found.open(found.resolve(name)) if name is not None else found.create()
    return Agent(session=chosen, model=model, base_url=base_url, tools=offered)


def _greet(agent: Agent) -> None:
    session = agent.session
    who = "The offline demo model answers" if agent.endpoint.is_demo else f"{agent.endpoint.model or 'The first model'}"
    where = "" if agent.endpoint.is_demo else f" at {agent.endpoint.name} answers"
    offered = ", ".join(tool.name for tool in agent.tools)
    printing.talk(
        f"{printing.line(session.title)} ({session.id}). {who}{where}{f'; tools: {offered}' if offered else ''}."
    )
    for sentence in look.reported(session):
        printing.talk(sentence)
    if _is_waiting(session):
        printing.talk("The last prompt has no answer yet; an empty line asks it again.")


def _is_waiting(session: Session) -> bool:
    last = session.messages[-1] if session.messages else {}
    return last.get("role") in ("user", "tool") or bool(last.get("interrupted"))


def _talk(agent: Agent) -> bool:
    """Answer prompts until there are no more; false if the last one got no answer."""
    is_answered = True
    for prompt in _prompts():
        if not prompt.strip() and not _is_waiting(agent.session):
            continue
        try:
            agent = _answer(agent, prompt if prompt.strip() else None)
            is_answered = True
        except ProviderError as error:
            printing.talk(f"{error} An empty line asks again.")
            is_answered = False
        except KeyboardInterrupt:
            printing.talk(f"\nStopped; what was said is saved in {agent.session.id}.")
            return True
    return is_answered


def _prompts() -> Iterator[str]:
    """What is typed, or piped, line by line, until it ends or Ctrl-C is pressed."""
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if is_terminal:
        printing.talk("Ctrl-D ends it.")
    while True:
        try:
            if is_terminal:
                import readline  # noqa: F401 - importing it gives ``input`` its line editing

                yield input("\n> ")
            elif line := sys.stdin.readline():
                yield line.rstrip("\n")
            else:
                return
        except EOFError:
            printing.talk("")
            return
        except KeyboardInterrupt:
            printing.talk("")
            return


def _answer(agent: Agent, prompt: str | None) -> Agent:
    """Show the answer to ``prompt`` as it comes; the agent that gave it: on a fork, if the session was taken."""
    try:
        hold = agent.begin(prompt)
    except SessionLocked as error:
        agent = _forked(agent, error)
        hold = agent.begin(prompt)
    with closing(agent.stream(prompt, hold=hold)) as events:
        _show(events)
    return agent


def _forked(agent: Agent, error: SessionLocked) -> Agent:
    if not sys.stdin.isatty() or not typer.confirm(printing.plain(f"{error}\nFork it, and go on there?"), err=True):
        raise error
    fork = agent.fork()
    printing.talk(f"Forked: {fork.session.id}")
    return fork


def _show(events: Iterator[Event]) -> None:
    from sessions_lib import calls, content
    from sessions_lib.events import Finished, Notice, TextDelta, ToolCallStarted, ToolFinished, UsageReported

    tokens: int | None = None
    for event in events:
        if isinstance(event, TextDelta):
            typer.echo(printing.plain(event.text), nl=False)
            sys.stdout.flush()
        elif isinstance(event, ToolCallStarted):
            typer.echo(f"  {printing.line(calls.label(event.call), 100)}", err=True, nl=False)
        elif isinstance(event, ToolFinished):
            failed = "failed: " if event.message.get("is_error") else ""
            printing.talk(f" -> {failed}{printing.line(content.text(event.message), 100)}")
        elif isinstance(event, UsageReported):
            tokens = (tokens or 0) + (event.usage.total or 0)
        elif isinstance(event, Notice):
            printing.talk(event.text)
        elif isinstance(event, Finished):
            printing.data()
            _end(event, tokens)


def _end(event: Finished, tokens: int | None) -> None:
    if event.finish_reason not in (None, "stop", "tool_calls"):
        printing.talk(f"The answer is not whole: the model ended with {printing.line(event.finish_reason, 40)!r}.")
    if tokens is not None:
        printing.talk(f"({printing.number(tokens)} tokens)")
