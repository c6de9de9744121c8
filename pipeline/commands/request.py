"""Parameters of a command as its options and arguments.

A command consists of its options, one call and one output::

    @click.command()
    @takes
    def greet(
        name: str = argument(),
        times: int = option(1, least=1, help="Number of greetings."),
        loud: bool = option(help="Greet in capitals."),
        settings: Settings = settings_options("store"),
    ) -> None: ...

The annotation of a parameter says what its option accepts: ``bool`` makes a flag, ``tuple[X, ...]`` an option
that may be repeated (its help says so), ``X | None`` one that may be left out. A parameter of any other type
is required unless it has a default. The name of the option is that of the parameter without its unit:
``wait_s`` is ``--wait``.

Options that go on together, or that several commands share, are the fields of a request: a frozen dataclass,
declared in the same way::

    @dataclass(frozen=True, slots=True)
    class GreetRequest:
        name: str = argument()
        times: int = option(1, least=1, help="Number of greetings.")

    @click.command()
    @takes
    def greet(request: GreetRequest) -> None: ...

Fields made by neither ``option`` nor ``argument`` keep their defaults.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Literal, Self, TypeVar, Union, get_args, get_origin, get_type_hints

import click

from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.model.clock import from_iso, has_date_digits, system_clock
from pipeline.model.errors import ConfigError, InvalidMessage
from pipeline.model.units import parse_duration_s

Result = TypeVar("Result")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
EXISTING_FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)
EXISTING_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)

_DECLARATION = "click"
_UNSET: Any = object()
_UNIT = re.compile(r"_(s|bytes)?$")


class Duration(click.ParamType):
    """Seconds, written as 30s, 2m or a plain number."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the duration."""
        try:
            return parse_duration_s(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Ago(float):
    """A moment, in epoch seconds, given as a number of seconds before now."""

    def __new__(cls, before_s: float) -> Self:
        """Count back from now."""
        return super().__new__(cls, system_clock() - before_s)

    def __init__(self, before_s: float) -> None:
        self.before_s = before_s


_MOMENTS = {
    "before": "a duration such as 2d, or an ISO 8601 time",
    "after": "ISO 8601, epoch seconds between 2000 and 2100, or a duration from now such as 2h",
    None: "an ISO 8601 time, or epoch seconds, between 2000 and 2100",
}


_WITH_UNIT = re.compile(r"[0-9.]+\s*[a-z]+")


class Moment(click.ParamType):
    """Epoch seconds between 2000 and 2100: an ISO 8601 time, a number, or a duration before or after now.

    ``words`` stand for times that the command determines itself, and are returned unchanged.
    """

    name = "time"

    def __init__(self, duration: Literal["before", "after"] | None = "before", words: Collection[str] = ()):
        self._duration = duration
        self._words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Read the time."""
        if isinstance(value, float) or value in self._words:
            moment: float | str = value
            return moment
        is_date = has_date_digits(value)  # then no number of seconds, of which it may be one by chance
        for read in (from_iso,) if is_date else (float, from_iso):
            with contextlib.suppress(ValueError, InvalidMessage):
                if EARLIEST_S <= (seconds := read(value)) < LATEST_S:
                    return seconds
        if is_date:
            return self.fail(f"{value} may be a date or seconds: write 2026-01-31, or {value}s", param, ctx)
        # A number without a unit that is no time may be a year, milliseconds since 1970, or a duration.
        if self._duration and _WITH_UNIT.fullmatch(value):
            with contextlib.suppress(ValueError):
                seconds = parse_duration_s(value)
                point = Ago(seconds) if self._duration == "before" else system_clock() + seconds
                if EARLIEST_S <= point < LATEST_S:
                    return point
        return self.fail(f"should be {_MOMENTS[self._duration]}: {value!r}", param, ctx)


class IsoTime(click.ParamType):
    """Epoch seconds of an ISO 8601 time."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the time."""
        try:
            return from_iso(value)
        except InvalidMessage as error:
            raise ConfigError(f"{param.opts[0] if param else 'time'}: {error}") from None


class FiniteRange(click.FloatRange):
    """A finite number in a range, not NaN."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the number."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """Options that make up one parameter of a command.

    Args:
        decorators: Decorators of click for the options, in their order in the help.
        take: Removes the values of the options from those of a command, and returns the parameter's value.
    """

    decorators: Sequence[Decorator]
    take: Callable[[dict[str, Any]], Any]


@dataclasses.dataclass(frozen=True, slots=True)
class _Declaration:
    """Declaration of a parameter or field as a parameter of click.

    Args:
        make: ``click.option`` or ``click.argument``.
        flag: Name such as ``--rate``; empty for that of the field.
        kind: Type of click; None for that of the annotation.
        limits: Keyword arguments of a range: ``min``, ``min_open``, ``max``, ``max_open``.
        parse: Function that reads the text, or the texts of a repeated option.
        attributes: Further arguments of click.
    """

    make: Callable[..., Decorator]
    flag: str
    kind: Any
    limits: dict[str, Any]
    parse: Callable[[Any], Any] | None
    attributes: dict[str, Any]


def option(
    default: Any = _UNSET,
    *,
    flag: str = "",
    kind: Any = None,
    choices: Iterable[str] = (),
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    under: float | None = None,
    parse: Callable[[Any], Any] | None = None,
    **attributes: Any,
) -> Any:
    """Return a parameter or field that is an option.

    A default is shown in the help unless it is None, False or empty.

    Args:
        default: Value where the option is not given.
        flag: Its names, such as ``-o/--output``; by default the parameter's name.
        kind: Type of click, or several for a tuple, if the annotation is not enough.
        choices: The only texts that are accepted.
        least: Smallest number.
        above: Bound that the number is larger than; instead of ``least``.
        most: Largest number.
        under: Bound that the number is smaller than; instead of ``most``.
        parse: Function that returns the value of a text, and raises ValueError if the text is wrong; of a
            repeated option, the value of all texts.
        attributes: Further arguments of ``click.option``, such as ``help`` and ``metavar``.
    """
    if default is not _UNSET:
        attributes["default"] = default
        attributes.setdefault(
            "show_default", default is not None and default is not False and default not in ("", ())
        )
    limits = {
        **{"min": least if above is None else above, "min_open": above is not None},
        **{"max": most if under is None else under, "max_open": under is not None},
    }
    if chosen := tuple(choices):
        kind = click.Choice(chosen)
    return _field(_Declaration(click.option, flag, kind, limits, parse, attributes))


def argument(kind: click.ParamType | None = None, **attributes: Any) -> Any:
    """Return a parameter or field that is given by its position; ``attributes`` are those of click."""
    return _field(_Declaration(click.argument, "", kind, {}, None, attributes))


def seed_option(**attributes: Any) -> Any:
    """Return the option of a seed, which is 1 by default."""
    return option(1, least=0, **attributes)


def json_option(each: str = "", **attributes: Any) -> Any:
    """Return the option ``--json``, such as ``json_option("a row")`` for an object of each row."""
    attributes.setdefault("help", f"Print one JSON object {each}.".replace(" .", "."))
    return option(flag="--json", **attributes)


def takes(command: Callable[..., Result]) -> Callable[..., Result]:
    """Give a command the options and arguments that its parameters declare, and the values of these."""
    parameters = inspect.signature(command).parameters
    annotations = {name: parameter.annotation for name, parameter in parameters.items()}  # without the result
    hints = get_type_hints(SimpleNamespace(__annotations__=annotations), inspect.unwrap(command).__globals__)
    parts = dict(_parts({name: parameter.default for name, parameter in parameters.items()}, hints))

    @functools.wraps(command)
    def wrapper(*args: Any, **given: Any) -> Result:
        return command(*args, **{name: part.take(given) for name, part in parts.items()}, **given)

    decorated: Callable[..., Result] = wrapper
    for decorator in reversed([decorator for part in parts.values() for decorator in part.decorators]):
        decorated = decorator(decorated)
    return decorated


def _parts(declared: dict[str, Any], hints: dict[str, Any]) -> Iterator[tuple[str, Part]]:
    """Yield the name and the part of each parameter or field that has options."""
    for name, value in declared.items():
        if isinstance(value, Part):
            yield name, value
        elif isinstance(value, dataclasses.Field) and _DECLARATION in value.metadata:
            decorator = _parameter(name, value.metadata[_DECLARATION], hints[name])
            yield name, Part([decorator], functools.partial(_pop, name))
        elif value is inspect.Parameter.empty and dataclasses.is_dataclass(hints.get(name)):
            yield name, _request_part(hints[name])


def _pop(name: str, given: dict[str, Any]) -> Any:
    return given.pop(name)


def _request_part(request: Any) -> Part:
    fields = {field.name: field for field in dataclasses.fields(request)}
    parts = dict(_parts(fields, get_type_hints(request)))
    return Part(
        [decorator for part in parts.values() for decorator in part.decorators],
        lambda given: request(**{name: part.take(given) for name, part in parts.items()}),
    )


def _field(declaration: _Declaration) -> Any:
    default = declaration.attributes.get("default", dataclasses.MISSING)
    return dataclasses.field(default=default, kw_only=True, metadata={_DECLARATION: declaration})


def _parameter(name: str, declaration: _Declaration, annotation: Any) -> Decorator:
    """Return the decorator of click for one option or argument."""
    inner, may_lack = _without_none(annotation)
    attributes = dict(declaration.attributes)
    is_option = declaration.make is click.option
    is_repeated = get_origin(inner) is tuple and get_args(inner)[-1] is Ellipsis
    if is_repeated and "nargs" not in attributes:
        inner = get_args(inner)[0]
    if not is_option:
        if is_repeated:
            attributes.setdefault("nargs", -1)
        elif may_lack:
            attributes.setdefault("required", False)
    elif inner is bool:
        attributes.setdefault("is_flag", True)
    elif is_repeated:
        attributes.setdefault("multiple", True)
    elif not (may_lack or "default" in attributes or attributes.get("multiple")):
        attributes["required"] = True
    if is_option and inner is Path and declaration.kind is None:
        attributes.setdefault("metavar", "FILE")
    if attributes.get("multiple") and "help" in attributes:
        attributes["help"] += " May be repeated."
    if declaration.parse:
        attributes["callback"] = _callback(declaration.parse)
    elif kind := declaration.kind or _kind_of(inner, declaration.limits):
        attributes["type"] = kind
    flags = _flags(name, declaration.flag) if is_option else ()
    return declaration.make(*flags, name, **attributes)


def _flags(name: str, flag: str) -> tuple[str, ...]:
    """Return the names of an option: a pair of a flag and its opposite is one name of click's."""
    if not flag:
        return (f"--{_UNIT.sub('', name).replace('_', '-')}",)
    return (flag,) if "/--no-" in flag else tuple(flag.split("/"))


def _callback(parse: Callable[[Any], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return the callback of click for a function that raises ValueError."""

    def callback(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        if value is None:
            return None
        try:
            return parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error), context, parameter) from None

    return callback


def _without_none(annotation: Any) -> tuple[Any, bool]:
    """Return a type without None, and whether None was part of it; several types are Any."""
    if get_origin(annotation) not in (UnionType, Union):
        return annotation, False
    parts = get_args(annotation)
    inner = [part for part in parts if part is not NoneType]
    return inner[0] if len(inner) == 1 else Any, NoneType in parts


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
