"""Commands that look at sessions and write nothing: ``list``, ``show``, ``search``.

Do not change, and do not read, more than they print.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from sessions_lib.cli import options, printing

if TYPE_CHECKING:
    from sessions_lib.prices import Spent
    from sessions_lib.store.manager import SessionManager
    from sessions_lib.store.records import Hit, SessionInfo
    from sessions_lib.store.session import Session

TRIAL = "trial:"  # the tag of the sessions of a trial, with its name behind
WORTH_INDEXING = 20_000_000  # bytes; less is indexed by the next search


@click.command("list")
@click.option("--tag", "-t", "tag", multiple=True, metavar="TAG", help="Only with this tag; may be repeated.")
@click.option("--date", "date", metavar="DAY", help="Only active on this day.")
@click.option("--trash", "trash", is_flag=True, help="List the trash instead.")
@click.option("--limit", "-n", "limit", type=click.IntRange(min=1), help="At most this many sessions.")
@click.option("--cost", "cost", is_flag=True, help="Say what was spent in each, too.")
@options.as_json
@options.folder
def list_sessions(
    tag: tuple[str, ...],
    date: str | None,
    trash: bool,
    limit: int | None,
    cost: bool,
    json: bool,
    folder: str | None,
) -> None:
    """List the sessions, newest first.

    Example: forkbook list --tag python --date 2026-08-28 --cost
    """
    if trash:
        _list_trash(options.manager(folder), json)
        return

    def first(found: SessionManager, waiting: int) -> None:
        rows = _chosen(found, tag, date, limit or 20)
        printing.talk(f"{printing.count(waiting, 'session')} are still being read. The newest of what is read so far:")
        _print_sessions(rows, {})

    with options.indexed(folder, None if json else first) as found:
        rows = _chosen(found, tag, date, limit)
        money = found.catalog.costs([row.id for row in rows]) if cost else {}
    if json:
        for row in rows:
            printing.record({**printing.jsonable(row), **printing.session_money(money[row.id])} if money else row)
    elif rows:
        _print_sessions(rows, money)
    if cost:
        options.say_own_prices()
    filtered = bool(tag or date)
    printing.talk(f"{printing.count(len(rows), 'session')} in {found.store.where}{' (filtered)' if filtered else ''}")
    if not rows and not filtered:
        printing.talk("Start one: forkbook chat. Or load the demo: forkbook demo")


def _chosen(found: SessionManager, tags: Sequence[str], date: str | None, limit: int | None) -> list[SessionInfo]:
    """The newest ``limit`` sessions with all ``tags`` that were active on ``date``."""
    if limit and not (date or tags):
        rows = found.catalog.list(min(limit, sys.maxsize))
        if any(map(is_of_trial, rows)):
            rows = found.list()
    else:
        rows = found.find_by_date(date) if date else found.list()
    for one in tags:
        carrying = {row.id for row in found.find_by_tag(one)}
        rows = [row for row in rows if row.id in carrying]
    if not any(one.lower().startswith(TRIAL) for one in tags):
        rows = [row for row in rows if not is_of_trial(row)]
    return rows[:limit]


def is_of_trial(row: SessionInfo) -> bool:
    """True for a repeat of a trial: shown only if its tag was asked for."""
    return any(tag.lower().startswith(TRIAL) for tag in row.tags)


def _print_sessions(rows: list[SessionInfo], money: Mapping[str, tuple[Spent, Spent]]) -> None:
    printing.table(
        ("ID", "TITLE", "TURNS", "OWN TOKENS", "OWN COST", "LAST MESSAGE", "TAGS", "NOTE"),
        [
            (
                row.id,
                row.title,
                printing.number(row.turns),
                printing.number(row.own_tokens.total),
                printing.spent(money[row.id][0], row.own_tokens) if money else "",
                printing.moment(row.last_active),
                ", ".join(row.tags),
                "; ".join(notes(row)),
            )
            for row in rows
        ],
        cut=(0, 1, 6, 7),
        right=(2, 3, 4),
    )


def notes(row: SessionInfo) -> list[str]:
    """What a person should know about a session beside its title: parent, verdict, damaged, unanswered."""
    from sessions_lib.store.records import verdict

    found = [f"fork of {row.parent}"] if row.parent else []
    if given := verdict(row.meta):
        found.append(printing.line(given, 20))
    if row.damaged:
        found.append(printing.count(row.damaged, "damaged line"))
    if row.unanswered:
        found.append(printing.count(row.unanswered, "unanswered call"))
    return found + ([row.fault] if row.fault else [])


def _list_trash(found: SessionManager, json: bool) -> None:
    entries = found.trash()
    if json:
        for entry in entries:
            printing.record(entry)
    elif entries:
        printing.table(
            ("ID", "TITLE", "KIND", "SINCE", "BYTES", "ENTRY"),
            [
                (e.session, e.title or "", e.kind, printing.moment(e.when), printing.number(e.size_bytes), e.entry)
                for e in entries
            ],
            cut=(1, 0),
            right=(4,),
        )
    printing.talk(f"{printing.count(len(entries), 'entry', 'entries')} in the trash of {found.store.where}")


@click.command("show")
@options.session_name
@click.option("--last", "-n", "last", type=click.IntRange(min=1), help="Only the last turns, this many.")
@options.as_json
@options.folder
def show(session: str, last: int | None, json: bool, folder: str | None) -> None:
    """Show what was said in a session.

    Example: forkbook show quest-1 --last 1
    """
    found = options.opened(folder, session)
    start = sum(len(turn) for turn in found.turns[:-last]) if last else 0
    if json:
        for message in found.messages[start:]:
            printing.record(message)
    else:
        from sessions_lib.messages import places

        _print_head(found)
        turns = places.turns_of(found.messages)
        for index in range(start, len(found.messages)):
            if index == found.inherited and index:
                place = places.place(found.messages, index)
                printing.data(f"\n--- Forked from {printing.line(found.parent or '')} {place} ---")
            _print_message(found, index, turns[index])
        options.say_own_prices()
    for sentence in reported(found):
        printing.talk(sentence)


def _print_head(session: Session) -> None:
    from sessions_lib.export import facts as export_facts
    from sessions_lib.messages import places

    printing.heading(printing.line(session.title))
    facts = [session.id, *export_facts.summary(session.messages, session.inherited, session.meta)]
    if session.parent:
        facts.append(f"forked from {session.parent} {places.place(session.messages, session.inherited)}")
    if session.tags:
        facts.append("tags: " + ", ".join(session.tags))
    printing.data(printing.line(" · ".join(facts), 1000))


def _print_message(session: Session, index: int, turn: int) -> None:
    from sessions_lib.export import facts as export_facts
    from sessions_lib.messages import content, tool_calls

    message = session.messages[index]
    printing.data()
    facts = [f"turn {turn}", f"message {index + 1}", export_facts.who(message)]
    facts += export_facts.facts(message, session.meta)
    printing.heading(printing.line(" · ".join(facts), 300))
    if text := export_facts.said(message):
        printing.data(printing.plain(text))
    for part in content.parts(message):
        if part.kind != "text":
            printing.data(printing.line(f"[{part.label}]"))
    for call in tool_calls.calls_of(message, index):
        printing.data(printing.line(f"-> {tool_calls.label(call, 400)}", 400))
    for note in export_facts.notes(message):
        printing.data(printing.line(f"({note})", 300))


def reported(session: Session) -> list[str]:
    """What reading the session found, each in a sentence with what to do; usually nothing."""
    report = session.report
    found = [f"{report.where}:{damage.line}: {damage.reason} (the line stays in the file)" for damage in report.damaged]
    found += [f"Unanswered: {call.name or 'a tool call'}; its outcome is unknown" for call in report.unanswered]
    if report.metadata:
        found.append(f"{report.metadata_where} {report.metadata}; title and tags are unknown")
    return [*found, f"See: forkbook check {session.id}"] if found else []


@click.command("search")
@click.argument("query", metavar="QUERY", nargs=-1, required=True)
@click.option("--limit", "limit", type=click.IntRange(min=1), help="At most this many hits.")
@options.as_json
@options.folder
def search(query: tuple[str, ...], limit: int | None, json: bool, folder: str | None) -> None:
    """Search everything that was said, newest first.

    QUERY: Words, "phrases", tag:python, role:user …

    Example: forkbook search "decorator closure" tag:python after:2026-08-01
    """
    from sessions_lib.query import parse

    text = " ".join(query)

    def first(found: SessionManager, waiting: int) -> None:
        hits = found.search(text, limit or 20)
        printing.talk(f"{printing.count(waiting, 'session')} are still being read. In the newest so far:")
        for hit in hits:
            _print_hit(hit)

    with options.indexed(folder, None if json else first, after_s=0.3) as found:
        hits = found.search(text, limit)
        elsewhere = [] if hits else list(_without_each(found, text))
        damaged = found.catalog.ids(parse("has:damage"))
        unindexed = 0 if found.catalog.is_in_memory else found.catalog.unindexed_bytes()
    for hit in hits:
        if json:
            printing.record(hit)
        else:
            _print_hit(hit)
    for note in parse(text).notes:
        printing.talk(note)
    if not text.strip():
        printing.talk("A blank query finds nothing. Give a word.")
    else:
        sessions = printing.count(len({hit.session for hit in hits}), "session")
        printing.talk(f"{printing.count(len(hits), 'hit')} in {sessions}")
    for sentence in elsewhere:
        printing.talk(sentence)
    if damaged:
        few = ", ".join(damaged[:5]) + (" …" if len(damaged) > 5 else "")
        printing.talk(f"Not all of it could be read and searched: {few}. See: forkbook check {damaged[0]}")
    if unindexed > WORTH_INDEXING:
        printing.talk(f"{unindexed // 10**6:,} MB are not indexed yet and were read. Index them: forkbook index")


def _without_each(found: SessionManager, text: str) -> Iterator[str]:
    """For a query that finds nothing: which word or filter to leave out, and how many sessions that would find."""
    from sessions_lib.query import parse, tokens

    asked = tokens(text)
    for token in asked if len(asked) > 1 else ():
        rest = " ".join(other for other in asked if other != token)
        if count := len(found.catalog.ids(parse(rest))):
            yield f"Without {token}: {printing.count(count, 'session')}"


def _print_hit(hit: Hit) -> None:
    where = hit.session if hit.message is None else f"{hit.session} turn {hit.turn}"
    shown, end = "", 0
    for start, stop in hit.marks:
        shown += printing.plain(hit.snippet[end:start])
        shown += printing.styled(printing.plain(hit.snippet[start:stop]), sys.stdout, bold=True)
        end = stop
    shown += printing.plain(hit.snippet[end:])
    printing.data(f"{where} · {printing.moment(hit.when)} · {' '.join(shown.split())}")


@click.command("diff")
@click.argument("sessions", metavar="SESSION...", nargs=-1, required=True)
@click.option(
    "--likeness", "likeness", is_flag=True, help="Only alike turns side by side, not those in the same place."
)
@click.option(
    "--redact/--no-redact",
    "redact",
    default=True,
    help="Replace keys, tokens, passwords, addresses, names included; on.",
)
@click.option("--format", "kind", type=click.Choice(["html", "markdown"]), help="A web page, or Markdown for an issue.")
@options.as_json
@options.folder
def diff(
    sessions: tuple[str, ...], likeness: bool, redact: bool, kind: str | None, json: bool, folder: str | None
) -> None:
    """Compare sessions: where they parted, and what each cost.

    SESSION: Two to four; one alone is compared with its parent.

    Example: forkbook diff quest-1 quest-2 --format html > comparison.html
    """
    from sessions_lib import compare
    from sessions_lib.export import comparison

    chosen = [options.opened(folder, name) for name in sessions]
    if len(chosen) == 1 and chosen[0].parent:
        chosen.insert(0, options.manager(folder).open(chosen[0].parent))
    redaction = options.redaction(redact, ())
    branches = redaction.branches([compare.Branch.of(session) for session in chosen])
    found = compare.compare(branches, order="likeness" if likeness else "prompts")
    if json:
        printing.record(comparison.as_json(found))
    elif kind == "html":
        printing.data(printing.plain(comparison.html(found, redacted=redaction.sentence())))
    elif kind == "markdown":
        printing.data(printing.plain(comparison.markdown(found)))
    else:
        colour = printing.is_styled(sys.stdout)
        click.echo(comparison.terminal(found, printing.terminal_width() or 100, colour=colour), nl=False)
    if redaction.findings:
        options.say_redaction(redaction)
