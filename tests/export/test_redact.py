"""What is found and replaced before a session is shared, and what is left alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessions_lib.errors import SessionError
from sessions_lib.export import redact
from sessions_lib.redaction import texts

# Assembled from pieces, so that no scanner of repositories takes these made-up keys for real ones.
LETTERS = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"key sk-{LETTERS} end", "key [API key] end"),
        (f"sk-proj-{LETTERS}", "[API key]"),
        (f"sk-or-v1-{LETTERS}", "[API key]"),
        (f"x=sk-ant-api03-{LETTERS}.", "x=[Anthropic key]."),
        ("id AKIA" + "IOSFODNN7EXAMPLE"[:16].replace("7", "Q").replace("1", "Q") + " ok", "id [AWS key] ok"),
        (f"ghp_{LETTERS[:36]}", "[GitHub token]"),
        (f"github_pat_{LETTERS}", "[GitHub token]"),
        (f"glpat-{LETTERS[:20]}", "[GitLab token]"),
        (f"AIza{LETTERS[:35]}", "[Google key]"),
        (f"xoxb-{LETTERS}", "[Slack token]"),
        (f"https://hooks.slack.com/services/T000/B000/{LETTERS}", "[webhook]"),
        (f"sk_live_{LETTERS}", "[Stripe key]"),
        (f"hf_{LETTERS[:34]}", "[Hugging Face token]"),
        (f"gsk_{LETTERS}", "[API key]"),
        (f"npm_{LETTERS[:36]}", "[package token]"),
        (f"Authorization: Bearer {LETTERS}", "Authorization: Bearer [authorization]"),
        ("'Authorization': 'Basic dXNlcjpwYXNz'", "'Authorization': 'Basic [authorization]'"),
        (f"curl -H 'bearer {LETTERS}'", "curl -H 'bearer [authorization]'"),
        ("postgres://ana:hunter2@db.example/x", "postgres://ana:[password]@db.example/x"),
        ("https://ana:p@ss:w0rd@host/x", "https://ana:[password]@host/x"),
        ("redis://:geheim@localhost:6379/0", "redis://:[password]@localhost:6379/0"),
        ("https://h/x?sig=abcdef123456&a=1", "https://h/x?sig=[token]&a=1"),
        ("API_KEY=abcd1234efgh", "API_KEY=[secret]"),
        ("export DB_PASSWORD=geheim", "export DB_PASSWORD=[secret]"),
        ('password = "correct horse"', 'password = "[secret]"'),
        ("password: hunter2!", "password: [secret]"),
        ('{"client_secret": "abcdefgh"}', '{"client_secret": "[secret]"}'),
        ('{\\"password\\": \\"hunter2\\"}', '{\\"password\\": \\"[secret]\\"}'),
        ("mysql -u root -p4821 shop", "mysql -u root -p[password] shop"),
        ("AccountKey=Zm9vYmFyYmF6cXV4;End", "AccountKey=[secret];End"),
        ("ask ana.b+x@mail.example.org.", "ask [e-mail address]."),
        ("é: josé@exemplo.pt", "é: [e-mail address]"),
        ("/home/ana/work", "~/work"),
        ("open('/Users/ana.b/x')", "open('~/x')"),
        ("file:///home/ana/x", "file://~/x"),
        ("/mnt/c/Users/ana/x", "~/x"),
        ("C:\\Users\\Ana Lee\\Desktop", "~\\Desktop"),
        ("c:/Users/ana/x", "~/x"),
        ('"C:\\\\Users\\\\ana\\\\x"', '"~\\\\x"'),
        ("~/.claude/projects/-Users-ana-code", "~/.claude/projects/~-code"),
        (f"first\\nsk-{LETTERS}", "first\\n[API key]"),
    ],
)
def test_a_secret_is_replaced_and_the_text_around_it_stays(text: str, expected: str) -> None:
    assert texts.redact_text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "task-management-systems-overview-2",
        "risk-assessment-for-the-north-shore",
        "def login(password: str, token: str | None = None) -> bool:",
        "client = OpenAI(api_key=api_key, timeout=3)",
        "api_key=os.environ['OPENAI_API_KEY']",
        "password = getpass.getpass()",
        "token=self.token",
        '"max_tokens": 1000, "prompt_tokens": 61',
        "max_tokens=4096",
        "the tokens: 12345678",
        "git clone git@github.com:org/repo.git",
        "pip install pkg@1.2.3",
        "https://example.org/home/page",
        "https://example.org:8080/a@b",
        "postgres://ana:${DB_PASS}@db.example/x",
        "ratio 3:4 @ home",
        "/Users/Shared/x and /home/",
        "the secret: be kind",
        "a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f8a9b0",
        "what is a bearer token?",
        "eyJust a word",
    ],
)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert texts.redact_text(text) == text


@pytest.mark.parametrize("newline", ["\n", "\\n"])
def test_a_private_key_block_goes_whole(newline: str) -> None:
    block = newline.join(
        ["-----BEGIN RSA " + "PRIVATE KEY-----", "MIIEpAIBAAKCAQEA", "Zm9v", "-----END RSA PRIVATE KEY-----"]
    )

    assert texts.redact_text(f"a {block} b") == "a [private key] b"


def test_a_private_key_that_was_cut_off_goes_too() -> None:
    assert texts.redact_text("-----BEGIN " + "PRIVATE KEY-----\nMIIEpAIBAAKC\nZm9v") == "[private key]"


def test_a_json_web_token_goes_whole() -> None:
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N"

    assert texts.redact_text(f"jwt={token};") == "jwt=[JSON web token];"


MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "id": "msg_ana@example.org", "content": [{"type": "text", "text": "I am ana@example.org"}]},
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "look in /home/ana",
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "login", "arguments": '{"user": {"password": "kärlek", "pin": 1, "n": 1.0}}'},
            }
        ],
        "x_vendor": {"deep": ["see /Users/ana/x"]},
    },
    {"role": "tool", "tool_call_id": "c1", "name": "login", "content": "ok for ana@example.org"},
]


def test_a_secret_of_the_metadata_that_could_be_an_id_is_none() -> None:
    meta = {"x": {"password": "geheim", "argv": ["--token", "abcdef12"]}, "clientSecret": "geheim", "parent": "a-1"}

    assert redact.Redaction().leaving([], meta).meta == {
        "x": {"password": "[secret]", "argv": ["--token", "[secret]"]},
        "clientSecret": "[secret]",
        "parent": "a-1",
    }


def test_every_text_of_a_message_is_redacted_and_ids_are_not() -> None:
    redacted = redact.redact(MESSAGES)

    assert redacted == [
        {"role": "user", "id": "msg_ana@example.org", "content": [{"type": "text", "text": "I am [e-mail address]"}]},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "look in ~",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {
                        "name": "login",
                        "arguments": '{"user": {"password": "[secret]", "pin": 1, "n": 1.0}}',
                    },
                }
            ],
            "x_vendor": {"deep": ["see ~/x"]},
        },
        {"role": "tool", "tool_call_id": "c1", "name": "login", "content": "ok for [e-mail address]"},
    ]


def test_the_messages_given_are_not_changed() -> None:
    before = json.dumps(MESSAGES)

    redact.redact(MESSAGES)

    assert json.dumps(MESSAGES) == before


def test_arguments_without_a_secret_keep_their_bytes() -> None:
    arguments = '{ "a":1.50, "b" : "\\u00e9" }'
    message = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": arguments}}]}

    assert redact.redact([message])[0]["tool_calls"][0]["function"]["arguments"] == arguments


def test_arguments_that_are_no_json_are_redacted_as_text() -> None:
    message = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": '{"to": "ana@example.org'}}]}

    arguments = redact.redact([message])[0]["tool_calls"][0]["function"]["arguments"]

    assert arguments == '{"to": "[e-mail address]'


def test_the_preview_lists_what_would_be_replaced_and_where() -> None:
    findings = redact.find(MESSAGES, meta={"title": "For ana@example.org", "tags": ["/home/ana"]})

    assert findings == [
        redact.Finding(None, "e-mail address", "ana@example.org", "[e-mail address]"),
        redact.Finding(None, "home folder", "/home/ana", "~"),
        redact.Finding(0, "e-mail address", "ana@example.org", "[e-mail address]"),
        redact.Finding(1, "home folder", "/home/ana", "~"),
        redact.Finding(1, "secret", "kärlek", "[secret]"),
        redact.Finding(1, "home folder", "/Users/ana", "~"),
        redact.Finding(2, "e-mail address", "ana@example.org", "[e-mail address]"),
    ]


def test_metadata_is_redacted_with_its_tags_and_system_prompt() -> None:
    meta = {"title": "Ana <ana@example.org>", "tags": ["/home/ana"], "system": "password: hunter2", "id": "a"}

    assert redact.Redaction().leaving([], meta).meta == {
        "title": "Ana <[e-mail address]>",
        "tags": ["~"],
        "system": "password: [secret]",
        "id": "a",
    }


def test_own_patterns_are_added_to_ours() -> None:
    assert texts.redact_text("Ana Lee, ana@example.org", ["Ana L\\w+"]) == "[redacted], [e-mail address]"


@pytest.mark.parametrize("pattern", ["(", "a*", "", "[", "(?P<x"])
def test_an_own_pattern_that_cannot_work_is_refused_by_name(pattern: str) -> None:
    with pytest.raises(SessionError, match=r"pattern|Narrow"):
        redact.find([], [pattern])


def test_the_bytes_of_an_image_are_left_alone() -> None:
    url = "data:image/png;base64,AKIA" + "ABCDEFGHIJKLMNOP"

    assert redact.redact([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}])[0][
        "content"
    ] == [{"type": "image_url", "image_url": {"url": url}}]


def test_two_keys_that_become_one_keep_both_values() -> None:
    message = {"role": "x", "k": {"a@example.org": 1, "b@example.org": 2}}

    assert redact.redact([message])[0]["k"] == {"[e-mail address]": 1, "[e-mail address]+": 2}


PIECES = st.lists(
    st.one_of(
        st.text(max_size=8),
        st.sampled_from(
            [
                "password=",
                "hunter22",
                '"',
                "'",
                "://",
                "@",
                "a.org",
                ":",
                "/home/",
                "Bearer ",
                "sk-",
                LETTERS,
                "[secret]",
                "\\n",
            ]
        ),
    ),
    max_size=12,
).map("".join)


@given(PIECES)
@example("/home/0/home/0")
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = texts.redact_text(text)

    assert texts.redact_text(once) == once


@given(st.text(max_size=30), st.text(max_size=30))
def test_a_key_is_found_wherever_it_stands(before: str, after: str) -> None:
    secret = "sk-ant-" + LETTERS

    assert secret not in texts.redact_text(before + secret + after)
