"""Flags that commands of ``smidgen replay`` share."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agents.commands.options import checked_by
from pipeline.files.values import address_of, pairs
from pipeline.model.errors import ConfigError

if TYPE_CHECKING:
    from agents.experiments.replay.plan import Choice, NamedRequest

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def shares(values: tuple[str, ...]) -> tuple[tuple[str, float], ...]:
    """Read GLOB=SHARE; shares need not add up to 1."""
    glob_shares = []
    for glob, text in pairs(values):
        try:
            share = float(text)
        except ValueError:
            share = math.nan
        if not 0 < share < math.inf:
            raise ValueError(f"{glob}: should have a share above 0, not {text[:40]!r}")
        glob_shares.append((glob, share))
    return tuple(glob_shares)


def headers(values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Read NAME=VALUE of headers; an empty value leaves the header out."""
    pairs = []
    for text in values:
        name, equals, value = text.partition("=")
        if not equals or not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"should be NAME=VALUE, not {text[:80]!r}")
        if not value.isprintable():
            raise ValueError(f"{name}: should be printable")
        pairs.append((name, value))
    return tuple(pairs)


def side_url(text: str) -> str:
    """Check an address such as http://127.0.0.1:8080."""
    from agents.experiments.replay.connection import address_of_url

    try:
        address_of_url(text)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return text


rules_option = click.option(
    "--rule",
    "rules",
    multiple=True,
    callback=checked_by(pairs),
    metavar="GLOB=NAME",
    help="Name of an endpoint by method and path, such as 'GET /shop/*=shop'. May be repeated.",
)
listen_option = click.option(
    "--listen",
    default="127.0.0.1:0",
    show_default=True,
    metavar="HOST:PORT",
    callback=checked_by(address_of),
    help="Address to listen on; port 0 takes a free one.",
)

_SELECTION: tuple[Decorator, ...] = (
    click.argument("path", metavar="FILE", type=click.Path(path_type=Path)),
    click.option(
        "--a",
        "url_a",
        required=True,
        metavar="URL",
        callback=checked_by(side_url),
        help="Side A, the old code.",
    ),
    click.option(
        "--b",
        "url_b",
        required=True,
        metavar="URL",
        callback=checked_by(side_url),
        help="Side B, the new code.",
    ),
    click.option(
        "--endpoint",
        "endpoints",
        multiple=True,
        metavar="GLOB",
        help="Replay these only, as `smidgen replay show` names them, or by path. May be repeated.",
    ),
    click.option(
        "--allow",
        "allowed",
        multiple=True,
        metavar="GLOB",
        help="Replay these though their methods may change something. May be repeated.",
    ),
    click.option(
        "--mix",
        multiple=True,
        callback=checked_by(shares),
        metavar="GLOB=SHARE",
        help="Proportions of endpoints, instead of the recorded ones. May be repeated.",
    ),
    click.option(
        "--header",
        "put",
        multiple=True,
        callback=checked_by(headers),
        metavar="NAME=VALUE",
        help="Header instead of a recorded one; an empty value leaves it out. May be repeated.",
    ),
    rules_option,
    click.option(
        "--connections",
        type=click.IntRange(1, 10_000),
        default=256,
        show_default=True,
        help="Most to each side.",
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(0.001, 3600),
        default=30.0,
        show_default=True,
        metavar="SECONDS",
    ),
)


def selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags for the requests and the addresses they are sent to."""
    for option in reversed(_SELECTION):
        command = option(command)
    return command


def read_chosen(path: Path, choice: Choice, rules: tuple[tuple[str, str], ...]) -> list[NamedRequest]:
    """Return the requests of a recording that may be replayed, and say on stderr what is left out.

    Raises:
        ConfigError: the file or the choice is wrong, or nothing is left.
    """
    from agents.experiments.replay.plan import choose, name_endpoints
    from agents.experiments.replay.recording import read_recording
    from pipeline.commands.terminal import print_note
    from pipeline.files.listing import listed
    from pipeline.model.units import counted

    recording = read_recording(path)
    for note in notes(path, recording):
        print_note(note)
    chosen, blocked = choose(name_endpoints(recording.requests, rules), choice)
    if blocked:
        count, names = blocked.total(), listed(sorted(blocked))
        print_note(f"{counted(count, 'request')} may change something and are blocked: {names} (--allow)")
    return chosen


def notes(path: Path, recording: Any) -> list[str]:
    """Return notes on a recording: invalid lines and sessions that are left out."""
    lines = []
    if recording.invalid:
        lines.append(f"{path}: {recording.invalid:,} lines are no requests; line {recording.first_invalid}")
    if recording.cut:
        lines.append(f"{path}: {recording.cut:,} requests of sessions that are not whole are left out")
    return lines
