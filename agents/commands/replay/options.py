"""Flags that commands of ``smidgen replay`` share."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.commands.request import argument, option
from pipeline.files.values import address_of, pairs
from pipeline.model.errors import ConfigError

if TYPE_CHECKING:
    from agents.experiments.replay.connection import Address
    from agents.experiments.replay.plan import NamedRequest

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


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


rules_option = option(
    flag="--rule",
    parse=pairs,
    metavar="GLOB=NAME",
    help="Name of an endpoint by method and path, such as 'GET /shop/*=shop'.",
)
listen_option = option(
    "127.0.0.1:0",
    parse=address_of,
    metavar="HOST:PORT",
    help="Address to listen on; port 0 takes a free one.",
)


@dataclass(frozen=True, slots=True)
class SelectionRequest:
    """Options that choose the requests of a recording, and the two sides they are sent to."""

    path: Path = argument(metavar="FILE")
    url_a: str = option(flag="--a", parse=side_url, metavar="URL", help="Side A, the old code.")
    url_b: str = option(flag="--b", parse=side_url, metavar="URL", help="Side B, the new code.")
    endpoints: tuple[str, ...] = option(
        flag="--endpoint",
        metavar="GLOB",
        help="Replay these only, as `smidgen replay show` names them, or by path.",
    )
    allowed: tuple[str, ...] = option(
        flag="--allow",
        metavar="GLOB",
        help="Replay these though their methods may change something.",
    )
    mix: tuple[tuple[str, float], ...] = option(
        parse=shares,
        metavar="GLOB=SHARE",
        help="Proportions of endpoints, instead of the recorded ones.",
    )
    put: tuple[tuple[str, str], ...] = option(
        flag="--header",
        parse=headers,
        metavar="NAME=VALUE",
        help="Header instead of a recorded one; an empty value leaves it out.",
    )
    rules: tuple[tuple[str, str], ...] = rules_option
    connections: int = option(256, least=1, most=10_000, help="Most connections to each side.")
    timeout_s: float = option(
        30.0, least=0.001, most=3600, metavar="SECONDS", help="Longest wait for an answer."
    )

    @property
    def addresses(self) -> tuple[Address, Address]:
        """Addresses of both sides."""
        from agents.experiments.replay.connection import address_of_url

        return address_of_url(self.url_a), address_of_url(self.url_b)

    def read(self) -> list[NamedRequest]:
        """Return the requests of the recording that may be replayed, and say on stderr what is left out.

        Raises:
            ConfigError: the file or the choice is wrong, or nothing is left.
        """
        from agents.experiments.replay.plan import RequestChoice, choose, name_endpoints
        from agents.experiments.replay.recording import read_recording
        from pipeline.commands.terminal import print_note
        from pipeline.files.listing import listed
        from pipeline.model.units import counted

        recording = read_recording(self.path)
        for note in notes(self.path, recording, self.rules):
            print_note(note)
        choice = RequestChoice(self.endpoints, self.allowed, self.mix)
        chosen, blocked = choose(name_endpoints(recording.requests, self.rules), choice)
        if blocked:
            count, names = blocked.total(), listed(sorted(blocked))
            print_note(f"{counted(count, 'request')} may change something and are blocked: {names} (--allow)")
        return chosen


def notes(path: Path, recording: Any, rules: Sequence[tuple[str, str]]) -> list[str]:
    """Return notes on a recording: invalid lines and sessions that are left out, and endpoints in one."""
    from agents.experiments.replay.plan import MOST_ENDPOINTS, folded_paths_of, name_endpoints
    from agents.logs.request_type import MOST_CHILDREN, OTHER
    from pipeline.files.listing import listed
    from pipeline.model.units import counted

    lines = []
    if folded := folded_paths_of(recording.requests, rules):
        many = f"more than {MOST_CHILDREN} names at {listed(folded)}"
        lines.append(f"{path}: {many} are one endpoint, :name (--rule names endpoints)")
    endpoints = [named.endpoint for named in name_endpoints(recording.requests, rules)]
    if others := endpoints.count(OTHER):
        lines.append(
            f"{path}: {counted(others, 'request')} beyond {MOST_ENDPOINTS:,} endpoints or without a path are "
            f"one endpoint, {OTHER} (--rule names endpoints)"
        )
    if recording.invalid:
        lines.append(f"{path}: {recording.invalid:,} lines are no requests; line {recording.first_invalid}")
    if recording.cut:
        lines.append(f"{path}: {recording.cut:,} requests of sessions that are not whole are left out")
    return lines
