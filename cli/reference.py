"""The reference of settings, commands and states, in Markdown, from the code itself: `make reference` writes it."""

import re
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
import typer
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from typer.core import TyperArgument, TyperGroup, TyperOption

from app.settings import Settings
from cli.main import LazyCommand, app
from consumer.decide import invariants as of_consumer
from controller.decide import invariants as of_controller
from controller.decide.machine import State
from domain.messages import ConsumerState
from domain.speeds import HIGHEST_SPEED


def settings_page() -> str:
    """A table for each section of the settings file."""
    return "\n".join(_settings_lines()) + "\n"


def commands_page() -> str:
    """What each command does, and its options."""
    return "\n".join(_command_lines()) + "\n"


def states_page() -> str:
    """Which state of the controller, and of a consumer, may follow which, and what always holds."""
    return "\n".join(_state_lines()) + "\n"


PAGES: Mapping[str, Callable[[], str]] = MappingProxyType(
    {"settings.md": settings_page, "commands.md": commands_page, "states.md": states_page}
)
"""By their names in `docs/`."""


def _settings_lines() -> Iterator[str]:
    yield "# Settings"
    yield ""
    yield "One TOML file describes a group; each component takes its section. The environment goes before the file:"
    yield "`KCGA_KAFKA__GROUP=billing` is `group` in `[kafka]`; tables and lists are given as JSON."
    yield "`kcga validate --settings FILE` names every fault of a file at once."
    alone = {name: field for name, field in Settings.model_fields.items() if not _is_section(field)}
    yield from ("", "## Without a section", "", *_table(alone))
    for section, field in Settings.model_fields.items():
        model = field.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            yield from ("", f"## [{section}]", "", _prose(model.__doc__ or ""), "", *_table(model.model_fields))


def _is_section(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)


def _table(fields: Mapping[str, FieldInfo]) -> Iterator[str]:
    yield from ("| setting | type | default | |", "| --- | --- | --- | --- |")
    for setting, field in fields.items():
        described = _cell(_prose(field.description or ""))
        yield f"| `{setting}` | {_cell(_type(field))} | {_cell(_default(field))} | {described} |"


def _prose(docstring: str) -> str:
    """The first paragraph, in one line, for readers of the site."""
    first = docstring.strip().split("\n\n")[0]
    return re.sub(r"\s+", " ", first).replace("`docs/", "`")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _type(field: FieldInfo) -> str:
    bounds = "".join(_bounds(field.metadata))
    return f"{_named(field.annotation)}{bounds}"


def _named(annotation: Any) -> str:
    """What a person writes into the file."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *metadata = get_args(annotation)
        return _named(inner) + "".join(_bounds(_flat(metadata)))
    if origin in (Union, types.UnionType):
        return " or ".join(_named(each) for each in get_args(annotation) if each is not types.NoneType)
    if origin is Literal:
        return " or ".join(f'`"{each}"`' for each in get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return " or ".join(f'`"{each}"`' for each in annotation)
    if origin in (tuple, list):
        return f"list of {_named(get_args(annotation)[0])}"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "table"
    names = {str: "text", SecretStr: "text", int: "whole number", float: "number", bool: "true or false"}
    if annotation in names:
        return names[annotation]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"table ({', '.join(annotation.model_fields)})"
    return "path" if getattr(annotation, "__name__", "") == "Path" else str(getattr(annotation, "__name__", annotation))


def _flat(metadata: list[Any]) -> list[Any]:
    return [part for each in metadata for part in (each.metadata if isinstance(each, FieldInfo) else [each])]


def _bounds(metadata: list[Any]) -> Iterator[str]:
    """The newest bound of each kind: a setting may be narrower than its type."""
    for each in {type(each): each for each in metadata}.values():
        match each:
            case annotated_types.Ge(ge=limit):
                yield f", {limit:,.12g} or more" if isinstance(limit, int | float) else ""
            case annotated_types.Gt(gt=limit):
                yield f", above {limit:,.12g}" if isinstance(limit, int | float) else ""
            case annotated_types.Le(le=limit) if limit != HIGHEST_SPEED:  # which only keeps figures finite
                yield f", at most {limit:,.12g}" if isinstance(limit, int | float) else ""


def _default(field: FieldInfo) -> str:
    match field.default:
        case _ if field.default is PydanticUndefined:
            return "**needed**"
        case None:
            return "none"
        case bool(value):
            return f"`{str(value).lower()}`"
        case int(value) | float(value):
            return f"`{value:g}`" if value < 10_000 else f"`{value:,.12g}`".replace(",", "_")
        case str(value):
            return f'`"{value}"`'
        case (str(), *_) as values:
            return "`[" + ", ".join(f'"{value}"' for value in values) + "]`"
        case value:
            return f"`{value}`" if value else "none"


def _command_lines() -> Iterator[str]:
    yield "# Commands"
    yield ""
    yield "Exit codes: 0 for success, 1 for what went wrong, 2 for what was asked for wrongly."
    group = typer.main.get_command(app)
    if isinstance(group, TyperGroup):
        yield from _commands(group, "kcga")


def _commands(group: TyperGroup, prefix: str) -> Iterator[str]:
    for name, command in sorted(group.commands.items()):
        if isinstance(command, TyperGroup):
            yield from _commands(command, f"{prefix} {name}")
            continue
        command = command.load() if isinstance(command, LazyCommand) else command
        arguments = "".join(f" {_argument(each)}" for each in command.params if isinstance(each, TyperArgument))
        yield from ("", f"## {prefix} {name}", "", f"`{prefix} {name}{arguments}`: {_prose(command.help or '')}", "")
        options = [each for each in command.params if isinstance(each, TyperOption) and not each.hidden]
        if options:
            yield from ("| option | |", "| --- | --- |")
            for option in options:
                needed = " Needed." if option.required else ""
                yield f"| `{', '.join(option.opts)}` | {_cell(_prose(option.help or ''))}{needed} |"


def _state_lines() -> Iterator[str]:
    yield "# States, and what always holds"
    yield ""
    yield "Controller and consumers are state machines: events in, commands out. Tests ask after every event of every"
    yield "world that they make up or explore whether only these transitions happen, and whether all of this holds."
    yield from ("", "## The controller", "")
    yield "Hand-overs and creations go on in every state but Synchronize, claims in all. A state says what is awaited."
    yield from _machine(State, of_controller.FOLLOWS, of_controller.HOLDS)
    yield from ("", "## A consumer", "")
    yield "By its reports."
    yield from _machine(ConsumerState, of_consumer.FOLLOWS, of_consumer.HOLDS)


def _machine(states: Iterable[StrEnum], follows: Mapping[tuple[Any, Any], str], holds: Iterable[str]) -> Iterator[str]:
    yield from ("", "```text", *_arrows(states, follows), "```", "")
    yield from ("| from | to | when |", "| --- | --- | --- |")
    yield from (f"| {before} | {after} | {when} |" for (before, after), when in follows.items())
    yield from ("", "After every turn:", "")
    yield from (f"- {words}" for words in holds)


def _arrows(states: Iterable[StrEnum], follows: Collection[tuple[Any, Any]]) -> Iterator[str]:
    """Where each state can lead to."""
    width = max(len(state) for state in states)
    for state in states:
        after = [other for before, other in follows if before is state]
        yield f"{state:>{width}} -> {', '.join(after) or '(the end)'}"


def _argument(argument: TyperArgument) -> str:
    name = (argument.name or "").upper()
    shown = f"{name}..." if argument.nargs == -1 else name
    return shown if argument.required else f"[{shown}]"


def _main() -> None:
    docs = Path("docs")
    if "--check" not in sys.argv:
        for name, page in PAGES.items():
            (docs / name).write_text(page(), encoding="utf-8")
    elif outdated := [name for name, page in PAGES.items() if (docs / name).read_text(encoding="utf-8") != page()]:
        sys.exit(f"docs/ is behind the code, `make reference` writes it anew: {', '.join(outdated)}")


if __name__ == "__main__":
    _main()
