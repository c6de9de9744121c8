"""Options of commands: its parameters declare them, or the fields of its request."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click
import pytest
from click.testing import CliRunner, Result

from pipeline.commands.request import Moment, argument, json_option, option, seed_option, takes


@dataclass(frozen=True, slots=True)
class Request:
    file: Path = argument(metavar="FILE")
    rates: tuple[float, ...] = option((1.0, 2.0), flag="--rate", above=0, most=5, help="Hertz.")
    size: Literal["small", "large"] = option("small")
    name: str = option(help="Of the service.")
    most: int | None = option(least=3)
    share: float = option(0.0, least=0, most=1)
    pairs: tuple[tuple[str, str], ...] = option(nargs=2, multiple=True, flag="--pair")
    seed: int = seed_option()
    loud: bool = option()
    as_json: bool = json_option("a row")
    held: int = 7


def even(text: str) -> int:
    """Read an even number."""
    if (number := int(text)) % 2:
        raise ValueError("should be even")
    return number


@click.command()
@takes
def ask(request: Request, more: bool = option(), wait_s: int | None = option(parse=even)) -> None:
    """Ask."""
    click.echo(repr((request, more, wait_s)))


def asked(given: list[str]) -> Result:
    """Run the command, which is the tests' own."""
    runner = CliRunner()
    return runner.invoke(ask, given)


@pytest.mark.parametrize(
    ("given", "request_"),
    [
        (
            ["f", "--name", "a"],
            Request(
                file=Path("f"),
                name="a",
                most=None,
                pairs=(),
                loud=False,
                as_json=False,
            ),
        ),
        (
            ["f", "--name", "a", "--rate", "5", "--most", "3", "--pair", "a", "b", "--loud", "--json"],
            Request(
                file=Path("f"),
                rates=(5.0,),
                name="a",
                most=3,
                pairs=(("a", "b"),),
                loud=True,
                as_json=True,
            ),
        ),
    ],
    ids=["defaults", "given"],
)
def test_a_command_receives_what_it_is_asked(given: list[str], request_: Request) -> None:
    result = asked(given)
    assert result.output == f"{(request_, False, None)!r}\n"


@pytest.mark.parametrize(
    "given",
    [
        ["f"],
        ["--name", "a"],
        ["f", "--name", "a", "--rate", "0"],
        ["f", "--name", "a", "--rate", "nan"],
        ["f", "--name", "a", "--most", "2"],
        ["f", "--name", "a", "--size", "none"],
    ],
)
def test_what_no_request_holds_is_refused(given: list[str]) -> None:
    assert asked(given).exit_code == 2


def test_the_help_has_types_bounds_and_defaults_in_the_order_of_the_fields() -> None:
    lines = [" ".join(line.split()) for line in asked(["--help"]).output.splitlines()]
    assert lines[0] == "Usage: ask [OPTIONS] FILE"
    assert lines[5:-1] == [
        "--rate FLOAT RANGE Hertz. May be repeated. [default: 1.0, 2.0; 0<x<=5]",
        "--size [small|large] [default: small]",
        "--name TEXT Of the service. [required]",
        "--most INTEGER RANGE [x>=3]",
        "--share FLOAT RANGE [default: 0.0; 0<=x<=1]",
        "--pair TEXT...",
        "--seed INTEGER RANGE [default: 1; x>=0]",
        "--loud",
        "--json Print one JSON object a row.",
        "--more",
        "--wait TEXT",
    ]


def test_a_text_is_read_by_a_function() -> None:
    given = ["f", "--name", "a", "--wait"]
    assert asked([*given, "4"]).output.endswith(", False, 4)\n")
    assert "'--wait': should be even" in asked([*given, "3"]).output


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20260210", 1_770_681_600.0),
        ("2026-02-10T00:00:00Z", 1_770_681_600.0),
        ("20260210T0100+0100", 1_770_681_600.0),
        ("1770681600", 1_770_681_600.0),
    ],
)
@pytest.mark.parametrize("duration", ["before", "after", None])
def test_moments(text: str, expected: float, duration: Literal["before", "after"] | None) -> None:
    assert Moment(duration).convert(text, None, None) == expected


@pytest.mark.parametrize("duration", ["before", "after", None])
@pytest.mark.parametrize("text", ["260210", "202602", "10022026", "2026021012", "20260210120000"])
def test_digits_that_may_be_a_date_or_seconds_are_refused(
    text: str, duration: Literal["before", "after"] | None
) -> None:
    with pytest.raises(click.BadParameter, match=f"may be a date or seconds: write 2026-01-31, or {text}s"):
        Moment(duration).convert(text, None, None)


@pytest.mark.parametrize("duration", ["before", "after", None])
@pytest.mark.parametrize(
    "text", ["2026", "1770681600000", "90", "3000000000s", "-2h", "2026-02-30", "10/02/2026"]
)
def test_what_is_neither_a_time_nor_a_duration_is_refused(
    text: str, duration: Literal["before", "after"] | None
) -> None:
    with pytest.raises(click.BadParameter, match=f"should be .*: '{text}'"):
        Moment(duration).convert(text, None, None)
