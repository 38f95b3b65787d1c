"""What servers say in errors: their words out of every body seen, and whether a conversation is too long for a model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_lib.agent.providers.words import is_too_long, words


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"message": "no credit", "code": "x"}}, "no credit"),
        ({"error": "model not found"}, "model not found"),
        ([{"error": {"code": 400, "message": "Unknown name", "status": "INVALID_ARGUMENT"}}], "Unknown name"),
        ({"detail": "Not allowed here"}, "Not allowed here"),
        (
            {"detail": [{"type": "missing", "loc": ["body", "messages", 0], "msg": "Field required"}]},
            "body.messages.0: Field required",
        ),
        (
            {"object": "error", "message": {"detail": [{"loc": ["body", "n"], "msg": "Extra input"}]}},
            "body.n: Extra input",
        ),
        ({"object": "error", "message": "the model is loading", "code": 503}, "the model is loading"),
        ({"errors": [{"message": "one"}, {"message": "two"}]}, "one; two"),
        ({"errors": ["one", "one", "two"]}, "one; two"),
        ({"fault": {"faultstring": "no such key", "detail": {"errorcode": "x"}}}, "no such key"),
        ({"base_resp": {"status_code": 1004, "status_msg": "login fail"}}, "login fail"),
        ({"error_code": 6, "error_msg": "no permission"}, "no permission"),
        ({"error": True, "info": "no such route"}, "no such route"),
        ({"success": False, "messages": ["one", "two"]}, "one; two"),
        ({"data": {"error": "inner"}}, "inner"),
        ({"response": {"error": {"message": "inner"}}, "id": "x1"}, "inner"),
        ({"statusCode": 400, "statusMessage": "odd header"}, "odd header"),
        ({"non_field_errors": ["no such field"], "id": 7}, "no such field"),
        ({"whatever": "nobody foresaw this"}, "nobody foresaw this"),
        ({"object": "list", "err": "oddly"}, "oddly"),
        ('data: {"error": {"message": "in a stream"}}\n\n', "in a stream"),
        ('event: error\ndata: {"error": {"message": "in a stream"}}\n\ndata: [DONE]\n\n', "in a stream"),
        ({"Message": "User is not authorized"}, "User is not authorized"),
        ({"error": "invalid_request", "error_description": "no such scope"}, "no such scope"),
        ({"title": "Bad Request", "detail": "the body is no JSON", "status": 400}, "the body is no JSON"),
        ({"error": {"code": "rate_limited"}}, "rate_limited"),
        (
            {"error": {"message": "Provider returned error", "metadata": {"raw": '{"error":{"message":"busy"}}'}}},
            "Provider returned error: busy",
        ),
        ('{"error": {"message": "as a text"}}', "as a text"),
        ("upstream connect error", "upstream connect error"),
        (b"upstream \xff error", "upstream \N{REPLACEMENT CHARACTER} error"),
        (
            "<html><head><title>502 Bad Gateway</title><style>b{}</style></head>"
            "<body><h1>502 Bad Gateway</h1>\n<hr><center>nginx</center><script>x()</script></body></html>",
            "502 Bad Gateway · nginx",
        ),
        ("<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>", "AccessDenied · Access Denied"),
        (None, ""),
        ({}, ""),
        ("{}", ""),
        ([], ""),
        (7, ""),
        ({"error": None, "message": ""}, ""),
        ('{"cut": "off', '{"cut": "off'),
    ],
)
def test_the_words_of_an_error_come_out_of_every_body(body: Any, said: str) -> None:
    assert words(body) == said


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.binary(max_size=6),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["error", "message", "detail", "loc", "metadata", "raw"]), inner)
        ),
        max_leaves=20,
    )
)
def test_no_body_is_too_odd_for_its_words(body: Any) -> None:
    assert isinstance(words(body), str)


TOO_LONG = [
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "context_length_exceeded",
    "prompt is too long: 213462 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
    "Input is too long for requested model.",
    "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "Please reduce the length of the messages or completion.",
    "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens",
    "the request exceeds the available context size, try increasing it",
    "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
    "Context size has been exceeded.",
    "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 9 >= n_ctx: 8)",
    "Trying to keep the first 5000 tokens when context the overflows. n_keep: 5000 n_ctx: 4096",
    "prompt token count of 50000 exceeds the limit of 32000",
    "invalid params, context window exceeds limit (2013)",
    "Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)",
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    "prompt too long; exceeded max context length by 4 tokens",
    "the input length exceeds the context length",
    "input length exceeds maximum context length",
    "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
    "The input (265330 tokens) is longer than the model's context length (262144 tokens).",
    "Requested token count exceeds the model's maximum context length of 4096 tokens.",
    "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 8000 `inputs` tokens",
    "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000",
    "Range of input length should be [1, 30720]",
    "The prompt is too long: 9000, model maximum context length: 8192",
    "Too many input tokens",
    "Requested tokens (5000) exceed context window of 4096",
    "Tokens in prompt exceed the model's context window",
    "The conversation is too long for this model.",
    "model_context_window_exceeded",
    "max context length exceeded",
    "Messages are too long: reduce your prompt",
]
FITS = [
    "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.",
    "Too many tokens per minute for this organization",
    "max_tokens is too large: 40000. This model supports at most 16384 completion tokens",
    "Unknown parameter: context",
    "Function tools with reasoning_effort are not supported for gpt-6 in /v1/chat/completions.",
    "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64",
    "The image is too large",
    "You exceeded your current quota, please check your plan",
    "Conversation roles must alternate user/assistant/user/assistant/...",
    "Tool call id was call_abc but must be a-z, A-Z, 0-9, with a length of 9.",
    "no context",
    "",
]


@pytest.mark.parametrize("said", TOO_LONG)
def test_a_conversation_that_is_too_long_is_known_by_every_wording(said: str) -> None:
    assert is_too_long(said)
    assert is_too_long(said.upper())


@pytest.mark.parametrize("said", FITS)
def test_other_refusals_are_not_taken_for_a_conversation_that_is_too_long(said: str) -> None:
    assert not is_too_long(said)
