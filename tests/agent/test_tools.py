"""Python functions as tools, and their calls."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import sys
import threading
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from sessions_lib import tool
from sessions_lib.agent import tools
from sessions_lib.agent.tools import History, Tool
from sessions_lib.errors import SessionError
from sessions_lib.messages.tool_calls import Call


class Place(BaseModel):
    """An argument with a shape of its own."""

    name: str


def call(made: Tool, arguments: str, history: Any = ()) -> dict[str, Any]:
    return tools.call([made], Call(0, 0, "c1", made.name, arguments), history)


def test_a_function_becomes_a_schema_of_its_name_docstring_and_parameters() -> None:
    @tool
    def book(port: Annotated[str, Field(description="Where from")], seats: int = 1) -> str:
        """Book a boat."""
        return port * seats

    assert book.schema == {
        "type": "function",
        "function": {
            "name": "book",
            "description": "Book a boat.",
            "parameters": {
                "type": "object",
                "properties": {
                    "port": {"type": "string", "description": "Where from"},
                    "seats": {"type": "integer", "default": 1},
                },
                "required": ["port"],
                "additionalProperties": False,
            },
        },
    }


def test_a_tool_is_still_the_function() -> None:
    @tool
    def double(number: int) -> int:
        """Doubles."""
        return number * 2

    assert double(4) == 8


def test_parameters_may_have_any_name_and_any_type_json_can_carry() -> None:
    @tool
    def f(schema: list[int], copy: Literal["a", "b"], json: Place | None = None, model_config: float = 0.5) -> Any:
        """Odd names."""
        return [schema, copy, json.name if json else None, model_config]

    assert call(f, '{"schema":[1],"copy":"b","json":{"name":"Ember"}}')["content"] == '[[1],"b","Ember",0.5]'


def test_a_result_that_is_text_is_stored_as_it_is_and_everything_else_as_json() -> None:
    for value, stored in [("2.1 m", "2.1 m"), ({"é": [1, None]}, '{"é":[1,null]}'), (None, "null"), (True, "true")]:

        @tool(effect=False)
        def f(value: Any = value) -> Any:
            """Returns it."""
            return value

        result = call(f, "")
        assert (result["content"], result["is_error"], result["effect"]) == (stored, False, False)
        assert result["tool_call_id"] == "c1"
        assert result["name"] == "f"
        assert result["duration_ms"] >= 0


class Odd:
    """What JSON has nothing for."""

    def __repr__(self) -> str:
        return "Odd(1)"


class Mute:
    """What cannot even be shown."""

    def __repr__(self) -> str:
        raise ValueError


RING: list[Any] = [1]
RING.append(RING)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (Odd(), "The tool ran, returned a Odd, which is no JSON: Odd(1)"),
        (Mute(), "The tool ran, returned a Mute, which is no JSON: it cannot be shown (ValueError)"),
        ({"a": Odd()}, "The tool ran, returned a dict, which is no JSON: {'a': Odd(1)}"),
        (RING, "The tool ran, returned a list, which is no JSON: [1, [...]]"),
        (b"2.1 m", "2.1 m"),
        (bytearray("é", "utf-8"), "é"),
        (b"\x89PNG\r\n", "The tool ran, returned bytes that are no text (6 B): b'\\x89PNG\\r\\n'"),
        (b"\0" * 2000, f"The tool ran, returned bytes that are no text (2 kB): {bytes(64)!r}…"),
        (ValueError("returned, not raised"), "The tool ran, returned a ValueError, which is no JSON: ValueError('returned, not raised')"),
        (Path("/boats"), '"/boats"'),
    ],
)  # fmt: skip
def test_whatever_a_tool_returns_it_ran_and_has_not_failed(value: Any, told: str) -> None:
    @tool
    def f() -> Any:
        """Returns it."""
        return value

    result = call(f, "{}")

    assert (result["content"], result["is_error"], result["effect"]) == (told, False, True)


def test_a_tool_may_be_async_or_yield_its_result() -> None:
    @tool
    async def later(port: str) -> str:
        """Waits."""
        await asyncio.sleep(0)
        return f"2.1 m at {port}"

    @tool
    async def drops(count: int) -> Any:
        """Yields."""
        for number in range(count):
            yield number

    @tool
    def steps() -> Any:
        """Yields too."""
        yield from "ab"

    @tool
    def lazy() -> Any:
        """Returns a coroutine."""
        return later.function("Gull")

    @tool
    async def broken() -> str:
        """Fails."""
        raise RuntimeError("no boat")

    assert call(later, '{"port":"Ember"}')["content"] == "2.1 m at Ember"
    assert call(drops, '{"count":3}')["content"] == "[0,1,2]"
    assert call(steps, "{}")["content"] == '["a","b"]'
    assert call(lazy, "{}")["content"] == "2.1 m at Gull"
    assert (call(broken, "{}")["content"], call(broken, "{}")["is_error"]) == ("RuntimeError: no boat", True)


def test_what_an_async_tool_returns_is_awaited_however_often() -> None:
    async def depth() -> str:
        return "2.1 m"

    @tool
    async def later() -> Any:
        """Returns a coroutine."""
        return depth()

    @tool
    async def task() -> Any:
        """Returns a task."""
        return asyncio.ensure_future(depth())

    @tool
    async def steps() -> Any:
        """Returns a generator."""
        return (letter for letter in "ab")

    assert call(later, "{}")["content"] == "2.1 m"
    assert call(task, "{}")["content"] == "2.1 m"
    assert call(steps, "{}")["content"] == '["a","b"]'


class Untold(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (asyncio.CancelledError(), "CancelledError"),
        (GeneratorExit(), "GeneratorExit"),
        (BaseException("no boat"), "BaseException: no boat"),
        (Untold(), "Untold"),
    ],
)
def test_whatever_a_tool_raises_is_a_result_for_the_model(error: BaseException, told: str) -> None:
    @tool
    async def fails() -> str:
        """Raises it."""
        raise error

    @tool
    def fails_at_once() -> str:
        """Raises it, too."""
        raise error

    for failing in (fails, fails_at_once):
        result = call(failing, "{}")

        assert (result["content"], result["is_error"]) == (told, True)


def test_an_async_tool_works_inside_a_running_loop() -> None:
    @tool
    async def later() -> str:
        """Prints and waits."""
        await asyncio.sleep(0)
        return threading.current_thread().name

    async def notebook() -> dict[str, Any]:
        return call(later, "{}")

    assert asyncio.run(notebook())["content"] == "tool"


def test_what_a_tool_prints_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    @tool
    def noisy() -> str:
        """Prints."""
        print("printed")
        sys.stdout.write("written\n")
        with contextlib.redirect_stdout(io.StringIO()) as own:
            print("its own")
        return own.getvalue()

    print("before")
    assert call(noisy, "{}")["content"] == "its own\n"
    print("after")

    assert capfd.readouterr() == ("before\nafter\n", "printed\nwritten\n")


def test_others_print_where_they_did_while_tools_run_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    inside, go_on = threading.Barrier(3), threading.Event()
    usual = sys.stdout

    @tool
    def slow(number: int) -> str:
        """Prints when told to."""
        inside.wait(10)
        go_on.wait(10)
        print(f"tool {number}")
        return "ok"

    threads = [threading.Thread(target=call, args=(slow, json.dumps({"number": number}))) for number in (1, 2)]
    for thread in threads:
        thread.start()
    inside.wait(10)
    print("me")
    go_on.set()
    for thread in threads:
        thread.join(10)
    print("still me")

    out, err = capsys.readouterr()
    assert (out, sorted(err.splitlines())) == ("me\nstill me\n", ["tool 1", "tool 2"])
    assert sys.stdout is usual


def test_what_a_file_of_tools_prints_while_it_is_loaded_goes_to_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from sessions_lib import tool\nprint('loading')\n@tool\ndef f() -> None: ...\n")

    tools.from_file(file)

    assert capsys.readouterr() == ("", "loading\n")


def test_a_tool_that_ends_the_program_only_fails() -> None:
    @tool
    def f() -> None:
        """Exits."""
        raise SystemExit(3)

    assert call(f, "{}")["content"] == "SystemExit: 3"


@pytest.mark.parametrize("arguments", ['{"port":"E', "[]", "3", '"x"', "null", '{"port":NaN}'])
def test_arguments_that_are_no_object_are_an_error_and_nothing_runs(arguments: str) -> None:
    @tool
    def f(port: Any = None) -> str:
        """Must not run."""
        raise AssertionError

    result = call(f, arguments)

    assert (result["content"], result["is_error"], result["effect"]) == (
        "The arguments are not a JSON object. The tool was not run.",
        True,
        False,
    )


def test_history_is_given_and_not_offered() -> None:
    @tool
    def f(item: str, history: History) -> str:
        """Looks back."""
        return f"{item} {len(history)}"

    assert list(f.parameters["properties"]) == ["item"]
    assert call(f, '{"item":"x"}', [{"role": "user"}])["content"] == "x 1"
    assert call(f, '{"item":"x","history":[]}')["is_error"] is True


def test_what_cannot_be_a_tool_is_refused_with_a_sentence() -> None:
    def many(*items: str) -> None: ...

    def only_place(item: str, /) -> None: ...

    def unknown(item: NoSuchType) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - that is the point

    for function, words in [(many, r"\*items"), (only_place, "item"), (unknown, "NoSuchType")]:
        with pytest.raises(SessionError, match=words):
            tool(function)
    with pytest.raises(SessionError, match="<lambda>"):
        tool(lambda: 1)


def test_two_tools_of_one_name_are_refused() -> None:
    def f() -> None: ...

    with pytest.raises(SessionError, match="Two tools are called 'f'"):
        tools.as_tools([f, f])


def test_tools_are_loaded_from_a_file_in_its_order(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("UNIT = 'm'\n")
    file = tmp_path / "mine.py"
    file.write_text(
        "from __future__ import annotations\nfrom beside import UNIT\nfrom sessions_lib import tool\n\n"
        "@tool(effect=False)\ndef tide(port: str) -> str:\n    'The tide.'\n    return '2 ' + UNIT\n\n"
        "@tool\ndef book(port: str) -> str:\n    'Books.'\n    return 'ok'\n\ndef no_tool(): ...\n"
    )

    loaded = tools.from_file(file)

    assert [(item.name, item.effect) for item in loaded] == [("tide", False), ("book", True)]
    assert call(loaded[0], json.dumps({"port": "E"}))["content"] == "2 m"


@pytest.mark.parametrize(
    ("text", "words"),
    [("1/0", "ZeroDivisionError"), ("x = (", "SyntaxError"), ("x = 1", "defines no tool"), ("exit(3)", "SystemExit")],
)
def test_a_file_of_tools_that_cannot_be_used_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)

    with pytest.raises(SessionError, match=words) as caught:
        tools.from_file(file)

    assert "\n" not in str(caught.value)


def test_a_file_of_tools_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="no file of tools"):
        tools.from_file(tmp_path / "none.py")
