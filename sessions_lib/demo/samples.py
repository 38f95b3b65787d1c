"""What the demo's small sessions say: conversations written by hand, so that lists, search and charts have something.

Does not know when they took place or what they cost: ``demo`` makes that up, and marks them as the demo's.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """A tool call of a written turn and its result; ``effect``: it changed something, ``failed``: it did not work."""

    tool: str
    arguments: str
    result: str
    effect: bool = False
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """A prompt, the tool steps on the way, and the answer; ``finish`` as providers say it, ``""`` if it broke off."""

    prompt: str
    answer: str
    steps: tuple[Step, ...] = ()
    finish: str = "stop"


@dataclass(frozen=True, slots=True)
class Sample:
    """One small session."""

    title: str | None
    tags: tuple[str, ...]
    model: str
    turns: tuple[Turn, ...]


LARGE, SMALL, LOCAL = "sample-large", "sample-small", "sample-local"

AUTH_PROMPT = "Design a user authentication system architecture"
AUTH_ANSWER = """I suggest **JWT access tokens** with short lives.

1. `POST /login` checks the password (argon2id) and returns an access token (15 minutes) and a refresh token (30 days).
2. Every service verifies the signature on its own; no shared session store.
3. Refresh tokens are stored hashed, one row a device, so that they can be revoked.

The price: a stolen access token works until it expires."""
OAUTH_PROMPT = "Redesign using OAuth2"
OAUTH_ANSWER = """With **OAuth2**, signing in moves to an authorization server.

1. The app sends people to the server (authorization code with PKCE) and never sees a password.
2. Access tokens are opaque; services ask the server about them, so a revoked one stops at once.
3. Scopes say what a client may do; other companies' apps can be let in later.

The price: one more service that has to be up for anybody to sign in."""
REFRESH_PROMPT = "How to handle token refresh in JWT?"
REFRESH_ANSWER = """Rotate refresh tokens:

1. Each refresh returns a **new** refresh token and ends the old one.
2. If an old one is used again, somebody copied it: end the whole family and ask for the password.
3. Refresh a minute before the access token expires, one request at a time, so that two tabs do not race.

```python
def refresh(token: str) -> Pair:
    row = store.take(hash(token))        # removes it: a second use finds nothing
    if row is None:
        store.end_family(token)
        raise SignInAgain
    return issue(row.user, row.family)
```"""

SAMPLES: tuple[Sample, ...] = (
    Sample(
        "Python decorators",
        ("python", "decorator", "advanced"),
        LARGE,
        (
            Turn(
                "Teach me Python decorators",
                "A decorator is a function that takes a function and returns one:\n\n```python\ndef logged(function):\n"
                "    def wrapper(*args):\n        print(function.__name__)\n        return function(*args)\n"
                "    return wrapper\n```\n\n`wrapper` remembers `function`: that is a **closure**.",
            ),
            Turn(
                "How does it differ from class method decorators?",
                "`@classmethod` changes what the first argument is; a decorator of yours usually keeps the arguments "
                "and adds behaviour around the call.",
            ),
        ),
    ),
    Sample(
        "Why is my closure late?",
        ("python",),
        SMALL,
        (
            Turn(
                "My decorator closure in a loop always sees the last value. Why?",
                "Closures keep the *variable*, not its value. Bind it: `lambda x=x: x`.",
            ),
        ),
    ),
    Sample(
        "Slow query on orders",
        ("sql", "work"),
        LARGE,
        (
            Turn(
                "The orders page takes 9 seconds. Find out why.",
                "The query reads the whole table: there is no index on `orders.customer_id`.",
                (
                    Step("run_sql", '{"query": "explain select * from orders where customer_id = 7"}', "SCAN orders"),
                    Step("run_sql", '{"query": "select count(*) from orders"}', "[[4812331]]"),
                ),
            ),
            Turn(
                "Add the index.",
                "Done; the page now answers in 40 ms.",
                (
                    Step(
                        "run_sql",
                        '{"query": "create index orders_customer on orders(customer_id)"}',
                        "ok",
                        effect=True,
                    ),
                ),
            ),
        ),
    ),
    Sample(
        "Release 2.4",
        ("work", "git"),
        LARGE,
        (
            Turn(
                "Run the tests and tag the release.",
                "The tests fail in `test_dates.py`; I tagged nothing.",
                (
                    Step(
                        "run_tests",
                        '{"path": "tests"}',
                        "RuntimeError: 1 failed, 212 passed: test_dates.py::test_leap_year",
                        failed=True,
                    ),
                ),
            ),
            Turn(
                "Fixed. Again, please.",
                "All 213 pass; `v2.4.0` is tagged and pushed.",
                (
                    Step("run_tests", '{"path": "tests"}', "213 passed"),
                    Step("git", '{"args": ["tag", "v2.4.0"]}', "", effect=True),
                    Step("git", '{"args": ["push", "--tags"]}', "* [new tag] v2.4.0", effect=True),
                ),
            ),
        ),
    ),
    Sample(
        "Undo a commit",
        ("git",),
        SMALL,
        (Turn("How do I undo my last commit but keep the changes?", "`git reset --soft HEAD~1`"),),
    ),
    Sample(
        "Rebase or merge?",
        ("git", "work"),
        SMALL,
        (
            Turn(
                "Rebase or merge for a branch of three people?",
                "Merge. Rebasing a shared branch makes everybody else's copy of it wrong.",
            ),
        ),
    ),
    Sample(
        "Center a div",
        ("css",),
        LOCAL,
        (Turn("Center a div, both ways.", "```css\n.outer { display: grid; place-items: center; }\n```"),),
    ),
    Sample(
        "Dark theme colours",
        ("css", "design"),
        LOCAL,
        (
            Turn(
                "Name a dark theme with enough contrast.",
                "| use | colour | contrast |\n|---|---|---|\n| page | `#14171c` | |\n| text | `#e6e8ec` | 14.6 |\n"
                "| accent | `#8ab4f8` | 8.9 |",
            ),
        ),
    ),
    Sample(
        "Sourdough",
        ("cooking",),
        SMALL,
        (
            Turn(
                "My sourdough is flat. Flour 500 g, water 400 g, 4 hours at 20 °C.",
                "It is under-proofed: at 20 °C it needs 8 to 10 hours, until it has grown by half.",
            ),
            Turn("And the water?", "80 % is a lot for the start. Take 340 g until the shape holds."),
        ),
    ),
    Sample("Rice for eight", ("cooking",), LOCAL, (Turn("How much rice for 8 people?", "600 g dry."),)),
    Sample(
        "Lisboa em três dias",
        ("viagem", "português"),
        LARGE,
        (
            Turn(
                "Três dias em Lisboa com duas crianças: o que não pode faltar?",
                "**Dia 1:** Oceanário e o teleférico. **Dia 2:** Castelo e Alfama a pé, elétrico 28 bem cedo. "
                "**Dia 3:** Belém, com os pastéis antes das nove.",
                (
                    Step(
                        "weather",
                        '{"city": "Lisboa", "days": 3}',
                        '{"max": [24, 25, 22], "rain": [0, 0, 40]}',
                    ),
                ),
            ),
        ),
    ),
    Sample(
        "Train to the coast",
        ("travel",),
        SMALL,
        (
            Turn(
                "When does the last train to the coast leave on Sunday?",
                "I could not find out: the timetable did not answer.",
                (Step("timetable", '{"to": "coast", "day": "sunday"}', "TimeoutError: no answer", failed=True),),
            ),
        ),
    ),
    Sample(
        "Mean or median?",
        ("statistics",),
        SMALL,
        (
            Turn(
                "Salaries in a team of 12, one earns ten times as much. Mean or median?",
                "Median: one value cannot move it. Show the mean beside it if the total matters.",
            ),
        ),
    ),
    Sample(
        "A/B test, 2 % against 2.3 %",
        ("statistics", "work"),
        LARGE,
        (
            Turn(
                "2.0 % of 5,000 against 2.3 % of 5,000. Is it better?",
                "Not shown: p is about 0.30. For 80 % power you need about 37,000 visitors a side.",
                (Step("python", '{"code": "ztest(100, 5000, 115, 5000)"}', "p=0.299"),),
            ),
            Turn("And if we wait?", "Decide the number first. Looking every day finds differences that are not there."),
        ),
    ),
    Sample(
        "Regex for dates",
        ("python", "regex"),
        LOCAL,
        (
            Turn(
                "A regex for ISO dates, please.", r"`\d{4}-\d{2}-\d{2}`. Whether it is a day, ask `date.fromisoformat`."
            ),
        ),
    ),
    Sample(
        "Tide tables 潮汐表の読み方",
        ("日本語",),
        LARGE,
        (
            Turn(
                "潮汐表の「大潮」とは何ですか。",
                "新月と満月のころ、月と太陽の引力が重なって、干満の差が最も大きくなる日です。🌊",
            ),
        ),
    ),
    Sample(
        None,
        ("writing",),
        SMALL,
        (
            Turn(
                "Shorten this: “We regret to inform you that, due to circumstances beyond our control, the meeting "
                "which was scheduled for Monday has been moved to Tuesday.”",
                "“Monday's meeting is now on Tuesday.”",
            ),
        ),
    ),
    Sample(
        "Cover letter",
        ("writing",),
        LARGE,
        (
            Turn(
                "Write a cover letter for a lighthouse keeper.",
                "Dear Sir or Madam,\n\nfor eleven years I have",
                finish="",
            ),
            Turn("Go on.", "kept a light on Gull Rock, and in that time it went out once, for four minutes."),
        ),
    ),
    Sample(
        "All the fish of the Atlantic",
        ("lists",),
        LOCAL,
        (
            Turn(
                "List all fish of the Atlantic.",
                "1. Albacore\n2. American eel\n3. Anchovy\n4. Angler\n5.",
                finish="length",
            ),
        ),
    ),
    Sample(
        "Budget $5 and $7",
        ("money",),
        SMALL,
        (Turn("Lunch costs $5 and $7 a day for two. A month?", "$12 × 21 working days = **$252**."),),
    ),
    Sample(
        "Invoice reminders",
        ("work", "money"),
        LARGE,
        (
            Turn(
                "Send a reminder to everyone whose invoice is late.",
                "Two were late; both have a reminder. Ember Ltd. has no address, so I sent nothing there.",
                (
                    Step("late_invoices", "{}", '["Gull & Co.", "Ember Ltd.", "North Pier"]'),
                    Step("send_mail", '{"to": "Gull & Co."}', "sent", effect=True),
                    Step("send_mail", '{"to": "Ember Ltd."}', "ValueError: no address", effect=True, failed=True),
                    Step("send_mail", '{"to": "North Pier"}', "sent", effect=True),
                ),
            ),
        ),
    ),
    Sample(
        "Type hints for a cache",
        ("python", "advanced"),
        LARGE,
        (
            Turn(
                "How do I type a decorator that keeps the signature?",
                "With `ParamSpec`:\n\n```python\ndef cached(f: Callable[P, R]) -> Callable[P, R]: ...\n```",
            ),
            Turn("And for methods?", "The same; `self` is part of `P`."),
            Turn("Metaclasses next?", "Only if a class decorator cannot do it. `__init_subclass__` covers most of it."),
        ),
    ),
    Sample(
        "Why the sky is blue",
        ("science",),
        LOCAL,
        (Turn("Why is the sky blue? One sentence.", "Air scatters short, blue waves about five times more than red."),),
    ),
    Sample(
        "Tides explained",
        ("science",),
        SMALL,
        (
            Turn(
                "Why are there two tides a day?", "One bulge faces the Moon, one lies opposite; we turn through both."
            ),
            Turn("Then why not exactly every 12 hours?", "The Moon moves on meanwhile: 12 hours 25 minutes."),
        ),
    ),
    Sample(
        "Flaky test",
        ("python", "work"),
        LARGE,
        (
            Turn(
                "test_upload fails one time in twenty. Find it.",
                "It sorts files by time, and two can have the same. Sorting by name too makes it stable.",
                (
                    Step("read_file", '{"path": "tests/test_upload.py"}', "…\nassert names == ['a', 'b']\n…"),
                    Step(
                        "run_tests",
                        '{"path": "tests/test_upload.py", "times": 100}',
                        "6 failed, 94 passed",
                        failed=True,
                    ),
                    Step("edit_file", '{"path": "upload.py"}', "1 line changed", effect=True),
                    Step("run_tests", '{"path": "tests/test_upload.py", "times": 100}', "100 passed"),
                ),
            ),
        ),
    ),
)
