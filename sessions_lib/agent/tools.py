"""Tools: a Python function → what a model may call, and a call → its result message.

``@tool`` reads the signature and the docstring; pydantic makes the JSON schema of the arguments and checks what a model
sends against it. A parameter annotated ``History`` is not part of the schema: it receives the session's messages.

Whatever goes wrong in a call is a result for the model (``is_error``), never an exception: an unknown tool, arguments
that do not fit, a tool that raises. Does not store anything, and does not decide whether a tool is offered.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
import time
import typing
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import typing_extensions
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from sessions_lib.agent import tool_run
from sessions_lib.errors import SessionError
from sessions_lib.messages import tool_calls
from sessions_lib.messages.content import Message
from sessions_lib.messages.tool_calls import Call

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")  # what every provider accepts
NOT_RUN = "Not run: the run was stopped before this call."


class History(tuple[Message, ...]):
    """The session's messages up to the call, the calling message last: what a tool may look back at."""


class ToolError(SessionError):
    """A function that cannot be a tool, or a file of tools that cannot be loaded."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function a model may call; calling it directly calls the function.

    ``effect`` says that it changes the world: such calls are shown as having happened once for every branch.
    ``is_simulated``: it answers from a recording instead of being run, and its results say so.
    """

    name: str
    description: str
    effect: bool
    function: Callable[..., Any]
    parameters: dict[str, Any]
    arguments: TypeAdapter[dict[str, Any]]
    history_parameter: str | None
    is_simulated: bool = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def schema(self) -> dict[str, Any]:
        """The tool as a Chat Completions request offers it."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.parameters},
        }


class _PlainSchema(GenerateJsonSchema):
    """Without pydantic's titles: they repeat the names, and every request pays for them."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(*, effect: bool = True) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None, /, *, effect: bool = True
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """The decorated function as a ``Tool``: its name, its docstring, its annotated parameters.

    ``@tool(effect=False)`` for one that only looks.

    >>> @tool
    ... def buy(item: str) -> str:
    ...     '''Buy an item at the shop.'''
    ...     return f"You bought a {item}."
    >>> buy.parameters["properties"]
    {'item': {'type': 'string'}}
    """
    if function is None:
        return lambda decorated: _from_function(decorated, effect)
    return _from_function(function, effect)


def as_tools(functions: Iterable[Tool | Callable[..., Any]]) -> list[Tool]:
    """``functions`` as tools with distinct names; a plain function counts as one that changes the world."""
    made = [item if isinstance(item, Tool) else _from_function(item, effect=True) for item in functions]
    names = [item.name for item in made]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise ToolError(f"Two tools are called {repeated!r}; a model could not tell them apart. Rename one.")
    return made


def _from_function(function: Callable[..., Any], effect: bool) -> Tool:
    name = getattr(function, "__name__", type(function).__name__)
    if not _NAME.match(name):
        raise ToolError(f"{name!r} cannot be a tool's name: use up to 64 of a-z, A-Z, 0-9, '_' and '-'.")
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception as error:  # annotations are code of the author's: anything may come
        raise ToolError(f"The annotations of tool {name!r} cannot be read: {error}.") from error
    fields: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    history_parameter = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ToolError(f"The tool {name!r} takes {parameter}; a model passes arguments by name only.")
        hint = hints.get(parameter.name, Any)
        if hint is History:
            history_parameter = parameter.name
        elif parameter.default is parameter.empty:
            fields[parameter.name] = hint
        else:
            fields[parameter.name] = typing_extensions.NotRequired[hint]
            defaults[parameter.name] = parameter.default
    try:
        arguments = _adapter(name, fields)
        parameters = _parameters(arguments, defaults)
    except Exception as error:
        raise ToolError(f"The tool {name!r} has a parameter that JSON cannot carry: {error}.") from error
    return Tool(name, inspect.getdoc(function) or "", effect, function, parameters, arguments, history_parameter)


def _adapter(name: str, fields: dict[str, Any]) -> TypeAdapter[dict[str, Any]]:
    # A TypedDict and not a model: a parameter may be called "schema" or "copy" without hiding a method. The one of
    # typing_extensions, which comes with pydantic: pydantic takes typing's own from Python 3.12 on only.
    make: Any = typing_extensions.TypedDict
    shape = make(name, fields)
    shape.__pydantic_config__ = ConfigDict(extra="forbid")
    return TypeAdapter(shape)


def _parameters(arguments: TypeAdapter[dict[str, Any]], defaults: dict[str, Any]) -> dict[str, Any]:
    schema = arguments.json_schema(schema_generator=_PlainSchema)
    schema.pop("title", None)
    for name, default in defaults.items():
        try:
            schema["properties"][name].setdefault("default", TypeAdapter(Any).dump_python(default, mode="json"))
        except ValueError:
            continue  # a default that JSON cannot carry stays the function's own business
    return schema


def from_file(path: str | Path) -> list[Tool]:
    """The ``@tool`` functions a Python file defines, in its order. Runs the file, with its folder on the path."""
    with suppress(RuntimeError):  # the home of a user that there is not: no such file
        path = Path(path).expanduser()
    path = Path(path)
    if not path.is_file():
        raise ToolError(f"There is no file of tools at {path}. Check the path, or SESSIONS_TOOLS.")
    spec = importlib.util.spec_from_file_location(f"sessions_tools_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ToolError(f"{path} is not a Python file. Tools are @tool functions in a file that ends with .py.")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        with tool_run.prints_to_stderr():
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ToolError(f"{path} could not be loaded: {type(error).__name__}: {error}. Mend the file.") from error
    finally:
        sys.path.remove(str(path.parent))
    found = as_tools(item for item in vars(module).values() if isinstance(item, Tool))
    if not found:
        raise ToolError(f"{path} defines no tool. Decorate a function: from sessions_lib import tool, then @tool.")
    return found


def call(tools: Iterable[Tool], called: Call, history: Sequence[Message] = ()) -> Message:
    """The result message of ``called``, whatever happens: the tool is run once, or the result says why it was not.

    ``effect`` is false where nothing was run. For what becomes of what it returns and prints, see ``tool_run``.
    """
    known = {item.name: item for item in tools}
    found = known.get(called.name)
    if found is None:
        offered = ", ".join(sorted(known)) or "none"
        return result(called, f"There is no tool {called.name!r}. Available: {offered}.", effect=False)
    given = tool_calls.arguments(called)
    if given is None:
        return result(called, "The arguments are not a JSON object. The tool was not run.", effect=False)
    try:
        checked = found.arguments.validate_python(given)
    except ValidationError as error:
        return result(called, f"{_problems(error)} The tool was not run.", effect=False)
    if found.history_parameter is not None:
        checked = {**checked, found.history_parameter: History(history)}
    started = time.perf_counter()
    try:
        returned, failure = tool_run.run(found.function, checked), None
    except KeyboardInterrupt:
        raise  # a person's
    except BaseException as error:  # noqa: BLE001 - any failure of a tool is a result for the model
        returned, failure = None, _failure(error)
    duration_ms = round((time.perf_counter() - started) * 1000)
    text, is_error = (tool_run.as_text(returned), False) if failure is None else (failure, True)
    told = result(called, text, effect=found.effect, is_error=is_error, duration_ms=duration_ms)
    return {**told, "simulated": True} if found.is_simulated else told


def result(called: Call, text: str, *, effect: bool, is_error: bool = True, duration_ms: int | None = None) -> Message:
    """A tool message that answers ``called``; an error unless said otherwise."""
    message: Message = {
        "role": "tool",
        "tool_call_id": called.id,
        "content": text,
        "name": called.name,
        "is_error": is_error,
        "effect": effect,
    }
    return message if duration_ms is None else {**message, "duration_ms": duration_ms}


def of_stopped(waiting: Sequence[Call], *, is_running: bool) -> list[Message]:
    """Results for calls that will get no other: the first, if it is running, may have taken effect."""
    running = [result(called, tool_calls.UNKNOWN_OUTCOME, effect=True) for called in waiting[: int(is_running)]]
    return running + [result(called, NOT_RUN, effect=False) for called in waiting[int(is_running) :]]


def _failure(error: BaseException) -> str:
    if isinstance(error, SessionError):
        return str(error)  # already a sentence for whoever reads it
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - an error of somebody's that cannot even be told
        said = ""
    return f"{type(error).__name__}: {said}".rstrip(": ")


def _problems(error: ValidationError) -> str:
    """One sentence for all that does not fit, in words a model can act on."""
    found = [
        f"{'.'.join(str(part) for part in problem['loc']) or 'arguments'}: {problem['msg']}"
        for problem in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return f"The arguments do not fit: {'; '.join(found)}."
