"""Python functions as tools, and their calls."""

from __future__ import annotations

import json
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


def test_a_result_json_cannot_carry_is_an_error() -> None:
    @tool
    def f() -> Any:
        """Returns an object of its own kind."""
        return object()

    result = call(f, "{}")

    assert (result["is_error"], result["effect"]) == (True, True)


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
    async def later() -> None: ...

    def many(*items: str) -> None: ...

    def only_place(item: str, /) -> None: ...

    def unknown(item: NoSuchType) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - that is the point

    for function, words in [(later, "async"), (many, r"\*items"), (only_place, "item"), (unknown, "NoSuchType")]:
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
