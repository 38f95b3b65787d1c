"""``chat``: talk to an agent in a session, in a terminal or a script.

The answer goes to standard output, everything else to standard error. Ctrl-C and Ctrl-D end it; what was said is in the
session's file by then, so nothing has to be saved.

Does not know how a prompt is answered: it shows the events of ``Agent.stream``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, TextIO

import click

from sessions_lib import text
from sessions_lib.cli import change, edge, look, options, printing
from sessions_lib.errors import BudgetReached, SessionError, SessionLocked
from sessions_lib.messages import attachments

if TYPE_CHECKING:
    from sessions_lib.agent.agent import Agent, Prompt
    from sessions_lib.agent.approval import Decision
    from sessions_lib.agent.events import Event, Finished
    from sessions_lib.agent.tools import Tool
    from sessions_lib.messages.tool_calls import Call
    from sessions_lib.prices import Spent
    from sessions_lib.store.manager import SessionManager
    from sessions_lib.store.store import Hold


@click.command("chat")
@click.argument("session", metavar="[SESSION]", required=False)
@click.option("--session", "-s", "named", metavar="SESSION", help="The same, as an option.")
@click.option("--once", "once", metavar="PROMPT", help="Answer this one prompt and end.")
@click.option(
    "--attach", "attached", multiple=True, metavar="FILE", help="A picture or a text to go with the first prompt."
)
@click.option("--model", "-m", "model", metavar="NAME", help="The model; else $OPENAI_MODEL.")
@click.option("--base-url", "base_url", metavar="URL", help="Any Chat Completions address; else $OPENAI_BASE_URL.")
@click.option("--system", "system", metavar="TEXT", help="The system prompt; else the session's.")
@click.option("--temperature", "temperature", type=click.FloatRange(0, 2), metavar="NUMBER", help="Else the session's.")
@click.option(
    "--budget", "budget", type=click.FloatRange(0), metavar="DOLLARS", help="What this session may cost; kept with it."
)
@click.option(
    "--wire", type=click.Choice(["chat", "responses"]), help="Chat Completions or Responses; else by address."
)
@click.option("--effort", metavar="LEVEL", help="How long a reasoning model thinks: none, low, high, …")
@click.option("--tools", "tools", metavar="FILE", help="Offer the @tool functions of this Python file.")
@click.option("--allow-tools", is_flag=True, help="Do not ask before a tool changes something; a script is not asked.")
@click.option("--without-tools", is_flag=True, help="Ask a model that takes no tools without them.")
@options.folder
def chat(
    session: str | None,
    named: str | None,
    once: str | None,
    attached: tuple[str, ...],
    model: str | None,
    base_url: str | None,
    system: str | None,
    temperature: float | None,
    budget: float | None,
    wire: str | None,
    effort: str | None,
    tools: str | None,
    allow_tools: bool,
    without_tools: bool,
    folder: str | None,
) -> None:
    """Chat in a session, or in a new one.

    SESSION: Go on in this one; without it a new one is started.

    A session is answered where it was before: options first, then what it remembers, then the environment. The key
    comes from $OPENAI_API_KEY and goes to its own server only; without any endpoint the offline demo answers.

    Example: forkbook chat quest-1 --once "What now?"
    """
    if session is not None and named is not None:
        raise click.UsageError("Give the session once: as an argument or with --session.")
    name = named if session is None else session
    chosen = {"model": model, "base_url": base_url, "system": system, "temperature": temperature}
    chosen |= {"wire": wire, "effort": effort, "without_tools": without_tools}
    asks = sys.stdin.isatty() and not allow_tools  # a script that names a file of tools has agreed to them
    talk = _Talk(
        _agent(folder, name, tools, approve=_allow if asks else None, **chosen),
        options.manager(folder),
        is_new=name is None,
    )
    if budget is not None:
        from sessions_lib.agent import budget as budgets

        talk.agent.session.update_meta({budgets.KEY: budget})
    talk.attached = [(options.path(one).name, options.path(one).read_bytes()) for one in attached]
    attachments.content("", talk.attached)  # what cannot go along is said before anything is asked
    talk.greet()
    if once is not None:
        talk.answer_once(once)
    else:
        talk.go_on()


def _agent(folder: str | None, name: str | None, tools: str | None, **chosen: Any) -> Agent:
    """The agent on the session; on one in memory if none was named: a file is made when something is said."""
    from sessions_lib.agent.agent import Agent
    from sessions_lib.agent.tools import from_file
    from sessions_lib.store.session import Session

    session = Session() if name is None else options.opened(folder, name)
    offered = from_file(options.path(tools)) if tools else None
    return Agent(session=session, tools=offered, **chosen)


def _allow(call: Call, tool: Tool) -> Decision:
    """Ask the person whether a tool may run."""
    from sessions_lib.agent.approval import Decision
    from sessions_lib.messages import tool_calls

    asked = printing.plain(tool_calls.label(call, 200))
    what = "It changes something outside of this conversation." if tool.effect else "It only looks."
    printing.talk(f"\n{asked}? {what}")
    said = click.prompt("y yes, a always in this session, n no, or why not", default="n", err=True, show_default=False)
    word = said.strip().lower()
    if word in ("y", "yes", "a", "always"):
        return Decision(is_allowed=True, always=word.startswith("a"))
    return Decision(is_allowed=False, reason="" if word in ("n", "no") else said.strip())


class _Talk:
    """A conversation in a terminal or a pipe: which agent it is with now."""

    def __init__(self, agent: Agent, found: SessionManager, *, is_new: bool) -> None:
        self.agent, self._manager, self._is_new = agent, found, is_new
        self.attached: list[tuple[str, bytes]] = []  # what goes with the next prompt

    @property
    def _is_waiting(self) -> bool:
        """True if the last message of the session is one that an answer has to follow."""
        from sessions_lib.agent import approval

        stored = self.agent.session.messages
        last = stored[-1] if stored else {}
        return (
            bool(approval.waiting(self.agent.session))
            or last.get("role") in ("user", "tool")
            or bool(last.get("interrupted"))
        )

    def greet(self) -> None:
        """Say which session this is, who answers, with what tools, and what is wrong or left to answer."""
        session, endpoint = self.agent.session, self.agent.endpoint
        what = "A new session" if self._is_new else f"{printing.line(session.title)} ({session.id})"
        model = endpoint.model or "the first model"
        who = "The offline demo model" if endpoint.is_demo else f"{printing.line(model)} at {endpoint.name}"
        offered = ", ".join(tool.name for tool in self.agent.tools)
        printing.talk(f"{what}. {who} answers{f'; tools: {offered}' if offered else ''}.")
        for sentence in look.reported(session):
            printing.talk(sentence)
        options.say_own_prices()
        if session.parent and session.inherited == len(session.messages) and not endpoint.is_demo:
            from sessions_lib import prices

            if again := prices.of_history(session.messages, endpoint.model, endpoint.base_url or ""):
                printing.talk(again)
        if self._is_waiting:
            printing.talk("The last prompt has no whole answer yet; an empty line asks it again.")

    def answer_once(self, prompt: str) -> None:
        """Answer one prompt; stopped, it is an error, since a script has no whole answer then."""
        if not self._answer(prompt):
            raise SessionError(self._stopped)

    def go_on(self) -> None:
        """Answer prompts until there are no more. In a terminal an error is said, and the next prompt waited for."""
        for prompt in _prompts():
            if not prompt.strip() and not self._is_waiting:
                continue
            try:
                is_whole = self._answer(prompt if prompt.strip() else None)
            except SessionError as error:
                if not sys.stdin.isatty():
                    raise
                printing.talk(f"{error}{' An empty line asks again.' if self._is_waiting else ''}")
                continue
            if not is_whole and not sys.stdin.isatty():
                raise SessionError(self._stopped)
            if not is_whole:
                printing.talk(self._stopped)
                return
        if not self._is_new:
            printing.talk(f"To go on: forkbook chat {self.agent.session.id}")

    @property
    def _stopped(self) -> str:
        return f"Stopped; what was said is saved in {self.agent.session.id}."

    def _answer(self, prompt: str | None) -> bool:
        """Show the answer to ``prompt`` as it comes, and say whether it is whole: false if it was stopped.

        From a fork, if the session is being written by another and the person agrees.
        """
        from sessions_lib.agent import budget as budgets

        if self._is_new and prompt and prompt.strip():
            self.agent.check()  # nothing is made where nothing can be answered
            budget = {key: value for key, value in self.agent.session.meta.items() if key == budgets.KEY}
            self.agent.session = self._manager.create(**self.agent.settings, **budget)  # it goes on as it began
            self._is_new = False
        asked = None if prompt is None else attachments.content(prompt, self.attached)
        hold = self._begin(asked)
        self.attached.clear()
        with (
            edge.stoppable() as stop,
            edge.answer_apart() as answers,
            closing(self.agent.stream(asked, hold=hold, stop=stop)) as events,
        ):
            return _show(events, answers, self.agent.session.meta)

    def _begin(self, prompt: Prompt | None) -> Hold:
        """Begin to answer: in a fork, or over a budget, if the person agrees."""
        try:
            return self.agent.begin(prompt)
        except SessionLocked as error:
            self._fork(error)
        except BudgetReached as error:
            if not sys.stdin.isatty():
                raise
            change.ask(f"{error}\nGo on all the same?", False, "Nothing was sent")
            self.agent.over_budget = True
        return self._begin(prompt)

    def _fork(self, error: SessionLocked) -> None:
        session = self.agent.session
        if not sys.stdin.isatty():
            raise SessionError(f"{error} To fork it: forkbook fork {session.id}") from error
        change.ask(f"{error}\nFork it, and go on there?", False, "Nothing was sent")
        self.agent = self.agent.fork()
        printing.talk(f"Forked: {self.agent.session.id}")


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


def _show(events: Iterator[Event], answers: TextIO, meta: Mapping[str, Any]) -> bool:
    """Print what happens, the answer to ``answers``; false if it was stopped."""
    from sessions_lib import prices
    from sessions_lib.agent.events import (
        Finished,
        MessageStored,
        Notice,
        TextDelta,
        ToolCallStarted,
        ToolFinished,
        UsageReported,
        Waiting,
    )
    from sessions_lib.messages import content, tool_calls

    tokens: int | None = None
    money: list[Spent] = []
    is_within_line, is_whole = False, True
    try:
        for event in events:
            if isinstance(event, TextDelta):
                click.echo(printing.plain(event.text), answers, nl=False)
                answers.flush()
                is_within_line = True
            elif isinstance(event, ToolCallStarted):
                if is_within_line:
                    click.echo(file=answers)
                    is_within_line = False
                click.echo(f"  {printing.line(tool_calls.label(event.call), 100)}", err=True, nl=False)
            elif isinstance(event, ToolFinished):
                failed = "failed: " if event.message.get("is_error") else ""
                printing.talk(f" -> {failed}{printing.line(content.text(event.message), 100)}")
            elif isinstance(event, UsageReported) and event.usage.total is not None:
                tokens = (tokens or 0) + event.usage.total
            elif isinstance(event, MessageStored) and event.message.get("role") == "assistant":
                money.append(prices.of([event.message], meta))
            elif isinstance(event, Notice):
                printing.talk(event.text)
            elif isinstance(event, Waiting):
                printing.talk(f"{event.text}; Ctrl-C stops.")
            elif isinstance(event, Finished):
                click.echo(file=answers)
                is_within_line, is_whole = False, not event.interrupted
                _end(event, tokens, prices.add(money))
    finally:
        if is_within_line:
            click.echo(file=answers)
    return is_whole


def _end(event: Finished, tokens: int | None, money: Spent) -> None:
    if event.finish_reason not in (None, "stop", "tool_calls", "function_call"):
        printing.talk(f"The answer is not whole: the model ended with {printing.line(event.finish_reason, 40)!r}.")
    if tokens is not None:
        printing.talk(f"({text.tokens(tokens)}, {text.spent(money.cost, money.unpriced, money.unmetered)})")
