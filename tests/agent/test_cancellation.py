"""Work in a thread that may be left: every item arrives, errors too, and a stop ends it."""

from __future__ import annotations

import itertools
import threading

import pytest

from sessions_lib.agent.cancellation import Stop, Stopped, one, relay


def no_abort() -> None:
    """Nothing to end."""


@pytest.mark.parametrize("stop", [Stop(), Stop.never()], ids=["in a thread", "in place"])
def test_items_and_errors_arrive_in_order(stop: Stop) -> None:
    def source() -> object:
        yield 1
        yield 2
        raise KeyError("3")

    items = relay(source(), stop, no_abort)  # type: ignore[arg-type]  # a generator

    assert [next(items), next(items)] == [1, 2]
    with pytest.raises(KeyError, match="3"):
        next(items)


def test_a_stop_ends_a_source_that_never_does() -> None:
    stop, aborted = Stop(), threading.Event()
    items = relay(itertools.count(), stop, aborted.set)
    assert next(items) == 0
    stop.set()

    def rest() -> None:
        for item in items:
            assert item < 1_000_000

    with pytest.raises(Stopped):
        rest()
    assert aborted.is_set()


def test_what_had_arrived_before_the_stop_is_not_lost() -> None:
    stop, is_read, may_go_on = Stop(), threading.Event(), threading.Event()

    def source() -> object:
        yield from "abc"
        is_read.set()
        may_go_on.wait(30)
        yield "too late"

    items = relay(source(), stop, no_abort)  # type: ignore[arg-type]  # a generator
    found = [next(items)]
    is_read.wait(30)
    stop.set()
    with pytest.raises(Stopped):
        found.extend(iter(lambda: next(items), None))
    may_go_on.set()

    assert found == ["a", "b", "c"]


def test_a_source_that_is_left_is_closed_by_its_thread() -> None:
    is_closed = threading.Event()

    def source() -> object:
        try:
            yield from itertools.count()
        finally:
            is_closed.set()

    items = relay(source(), Stop(), no_abort)  # type: ignore[arg-type]  # a generator
    next(items)
    items.close()

    assert is_closed.wait(30)


@pytest.mark.parametrize("stop", [Stop(), Stop.never()], ids=["in a thread", "in place"])
def test_one_call_gives_its_value_or_its_error(stop: Stop) -> None:
    assert one(lambda: 3, stop) == 3
    with pytest.raises(ZeroDivisionError):
        one(lambda: 1 // 0, stop)


def test_one_call_is_not_waited_for_after_a_stop() -> None:
    stop, may_end = Stop(), threading.Event()
    threading.Timer(0.05, stop.set).start()

    with pytest.raises(Stopped):
        one(lambda: may_end.wait(30), stop)
    may_end.set()
