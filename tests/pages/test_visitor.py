"""What is kept for a browser: known by Streamlit's cookie however it is masked, bounded, and nobody else's."""

from __future__ import annotations

import pytest
import streamlit as st

from pages.shared import visitor

TOKEN = bytes(range(16))


def cookie(token: bytes = TOKEN, mask: bytes = b"\x01\x02\x03\x04") -> str:
    """The cookie as Streamlit masks it."""
    masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(token))
    return f"2|{mask.hex()}|{masked.hex()}|1796098027"


@pytest.fixture
def at(monkeypatch):
    """``at(cookie)``: what is kept for the browser that sends it."""
    monkeypatch.setattr(visitor, "_browsers", type(visitor._browsers)())

    def current(sent):
        monkeypatch.setattr(type(st.context), "cookies", {visitor._COOKIE: sent} if sent else {})
        return visitor.current()

    return current


def test_a_browser_is_known_however_its_cookie_is_masked(at):
    at(cookie()).keys["http://a/v1"] = "sk-a"

    assert at(cookie(mask=b"\xff\x00\xaa\x55")).keys == {"http://a/v1": "sk-a"}
    assert at(f'"{cookie()}"').keys == {"http://a/v1": "sk-a"}
    assert at(cookie(token=bytes(16))).keys == {}


@pytest.mark.parametrize(
    "odd", ["", "x", "2|zz|00|1", "1|01020304|00|1", "2|0102|" + "00" * 16 + "|1", "2|01020304|00|1"]
)
def test_a_browser_without_a_known_cookie_is_not_mixed_with_another(at, odd):
    at(cookie()).keys["http://a/v1"] = "sk-a"

    assert at(odd).keys == {}
    assert len(visitor._browsers) == 1


def test_only_the_last_browsers_are_kept_and_no_key_is_shown(at):
    at(cookie()).keys["http://a/v1"] = "sk-a"
    for number in range(visitor.MOST - 1):
        at(cookie(token=b"%16d" % number))
    assert at(cookie()).keys == {"http://a/v1": "sk-a"}
    for number in range(visitor.MOST, 2 * visitor.MOST):
        at(cookie(token=b"%16d" % number))

    assert len(visitor._browsers) == visitor.MOST
    assert at(cookie()).keys == {}
    kept = at(cookie())
    kept.keys["http://a/v1"] = "sk-a"
    assert "sk-a" not in repr(kept)
