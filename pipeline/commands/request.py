"""Requests of commands: a frozen dataclass whose fields are the options and arguments of one command.

A command then consists of its request, one call and one output::

    @dataclass(frozen=True, slots=True)
    class GreetRequest:
        name: str = argument()
        times: int = option(1, least=1, help="How often.")
        loud: bool = option(help="In capitals.")

    @click.command()
    @takes(GreetRequest)
    def greet(request: GreetRequest) -> None: ...

The annotation of a field says what its option accepts: ``bool`` makes a flag, ``tuple[X, ...]`` an option
that may be repeated, ``X | None`` one that may be left out. A field of any other type is required unless it
has a default. Fields made by neither ``option`` nor ``argument`` keep their defaults.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import click

from pipeline.commands.options import FiniteRange

Request = TypeVar("Request")
Result = TypeVar("Result")
Command = Callable[..., Result]

FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
EXISTING_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)

_DECLARATION = "click"
_UNSET: Any = object()


@dataclasses.dataclass(frozen=True, slots=True)
class _Declaration:
    """Declaration of a field as a parameter of click.

    Args:
        make: ``click.option`` or ``click.argument``.
        flag: Name such as ``--rate``; empty for that of the field.
        kind: Type of click; None for that of the annotation.
        limits: Keyword arguments of a range: ``min``, ``min_open``, ``max``.
        attributes: What else click is given.
    """

    make: Callable[..., Callable[[Command[Any]], Command[Any]]]
    flag: str
    kind: click.ParamType | None
    limits: dict[str, Any]
    attributes: dict[str, Any]


def option(
    default: Any = _UNSET,
    *,
    flag: str = "",
    kind: click.ParamType | None = None,
    choices: Iterable[str] = (),
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    **attributes: Any,
) -> Any:
    """Return a field that is an option.

    A default is shown in the help unless it is None, False or empty.

    Args:
        default: Value where the option is not given.
        flag: Its name, such as ``--rate``; by default that of the field.
        kind: Type of click, if the annotation is not enough.
        choices: The only texts that are accepted.
        least: Smallest number.
        above: Bound that the number is larger than; instead of ``least``.
        most: Largest number.
        attributes: What else ``click.option`` takes, such as ``help`` and ``metavar``.
    """
    if default is not _UNSET:
        attributes["default"] = default
        attributes.setdefault(
            "show_default", default is not None and default is not False and default not in ("", ())
        )
    limits = {"min": least if above is None else above, "min_open": above is not None, "max": most}
    if chosen := tuple(choices):
        kind = click.Choice(chosen)
    return _field(_Declaration(click.option, flag, kind, limits, attributes))


def argument(kind: click.ParamType | None = None, **attributes: Any) -> Any:
    """Return a field that is an argument, given by its position; ``attributes`` are those of click."""
    return _field(_Declaration(click.argument, "", kind, {}, attributes))


def seed_option(**attributes: Any) -> Any:
    """Return the field of a seed, which is 1 by default."""
    return option(1, least=0, **attributes)


def json_option(each: str = "", **attributes: Any) -> Any:
    """Return the field of ``--json``, such as ``json_option("a row")`` for an object of each row."""
    attributes.setdefault("help", f"Print one JSON object {each}.".replace(" .", "."))
    return option(flag="--json", **attributes)


def takes(request: type[Request]) -> Callable[[Command[Result]], Command[Result]]:
    """Give a command the options and arguments of a request, which it receives as its last positional one."""
    hints = get_type_hints(request)
    fields: dict[str, _Declaration] = {
        field.name: field.metadata[_DECLARATION]
        for field in dataclasses.fields(request)  # type: ignore[arg-type]
        if _DECLARATION in field.metadata
    }

    def decorate(command: Command[Result]) -> Command[Result]:
        @functools.wraps(command)
        def wrapper(*args: Any, **kwargs: Any) -> Result:
            values = {name: kwargs.pop(name) for name in fields}
            return command(*args, request(**values), **kwargs)

        decorated: Command[Result] = wrapper
        for name, declaration in reversed(fields.items()):
            decorated = _parameter(name, declaration, hints[name])(decorated)
        return decorated

    return decorate


def _field(declaration: _Declaration) -> Any:
    default = declaration.attributes.get("default", dataclasses.MISSING)
    return dataclasses.field(default=default, kw_only=True, metadata={_DECLARATION: declaration})


def _parameter(
    name: str, declaration: _Declaration, annotation: Any
) -> Callable[[Command[Any]], Command[Any]]:
    """Return the decorator of click for one field."""
    inner, may_lack = _without_none(annotation)
    attributes = dict(declaration.attributes)
    is_option, is_repeated = declaration.make is click.option, get_origin(inner) is tuple
    if is_repeated and "nargs" not in attributes:
        inner = get_args(inner)[0]
    if is_option:
        if inner is bool:
            attributes.setdefault("is_flag", True)
        elif is_repeated:
            attributes.setdefault("multiple", True)
        elif not may_lack and "default" not in attributes:
            attributes["required"] = True
    elif is_repeated:
        attributes.setdefault("nargs", -1)
    kind = declaration.kind or _kind_of(inner, declaration.limits)
    if kind is not None:
        attributes["type"] = kind
    flags = [declaration.flag or f"--{name.replace('_', '-')}"] if is_option else []
    return declaration.make(*flags, name, **attributes)


def _without_none(annotation: Any) -> tuple[Any, bool]:
    """Return a type without None, and whether None was part of it."""
    if get_origin(annotation) not in (UnionType, Union):
        return annotation, False
    (inner,) = (part for part in get_args(annotation) if part is not NoneType)
    return inner, True


def _kind_of(annotation: Any, limits: dict[str, Any]) -> click.ParamType | None:
    """Return the type of click for a type; None where click knows by itself."""
    bounded = any(limits.get(name) is not None for name in ("min", "max"))
    if annotation is int:
        return click.IntRange(**limits) if bounded else click.INT
    if annotation is float:
        return FiniteRange(**limits) if bounded else click.FLOAT
    if annotation is Path:
        return click.Path(path_type=Path)
    if get_origin(annotation) is Literal:
        return click.Choice(get_args(annotation))
    return None
