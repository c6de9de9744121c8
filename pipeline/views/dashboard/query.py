"""Query of a list of regressions, from its URL: filters, order and page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.model.clock import from_iso
from pipeline.model.errors import ConfigError, InvalidMessage
from pipeline.model.metric_kind import is_gcpu
from pipeline.model.units import parse_duration_s
from pipeline.views.dashboard.item import OPEN, STATES, Item

PAGE = 50
MOST_A_PAGE = 500

SORTS: Mapping[str, Callable[[Item], Any]] = {
    "detected": lambda item: item.detected_time,
    "changed": lambda item: item.change_time,
    "size": lambda item: abs(item.delta) if is_gcpu(item.metric_kind) else -1.0,
    "relative": lambda item: float("inf") if item.relative is None else abs(item.relative),
    "waste": lambda item: -1.0 if item.waste_servers is None else item.waste_servers,
    "service": lambda item: (item.service, item.metric),
    "metric": lambda item: (item.metric, item.service),
    "state": lambda item: list(STATES).index(item.state),
    "suspect": lambda item: (item.suspect == "", item.author, item.suspect),
}
"""Orders of a list, by column."""

_DESCENDING = ("detected", "changed", "size", "relative", "waste")
"""Orders with the largest first, unless a minus says otherwise."""


@dataclass(frozen=True, slots=True)
class Query:
    """Filter of a list of regressions. Empty matches all; the names are those of the URL."""

    state: str = "open"  # one of STATES, open, or all
    service: str = ""
    search: str = ""  # in names of series and suspects, ignoring case
    workload: str = ""
    owner: str = ""  # author of the likeliest suspect
    release: str = ""
    min_size: float = 0.0  # points of gCPU
    min_servers: float = 0.0  # servers that it takes
    age: str = ""  # largest age since its detection, as 7d
    sort: str = "detected"  # one of SORTS, with a minus for the reverse
    page: int = 1
    per: int = PAGE

    def url(self, path: str, **changed: Any) -> str:
        """Return the address of the list with some parameters changed; defaults are left out."""
        query = replace(self, **changed)
        parameters = {
            f.name: getattr(query, f.name) for f in fields(Query) if getattr(query, f.name) != f.default
        }
        return f"{path}?{urlencode(parameters)}" if parameters else path

    def sorted_by(self, column: str) -> str:
        """Return the ``sort`` after a click on a column: the column's own order, or its reverse."""
        return f"-{column}" if self.sort == column else column

    def direction(self, column: str) -> str:
        """Return the order of a column, as the value of ``aria-sort``."""
        if self.sort.removeprefix("-") != column:
            return "none"
        return "descending" if (column in _DESCENDING) != self.sort.startswith("-") else "ascending"


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list."""

    items: tuple[Item, ...]
    total: int  # on all pages
    first: int  # number of the first item, from 1; 0 on an empty page
    pages: int


def read_query(given: Mapping[str, str]) -> Query:
    """Read the query of a URL.

    Raises:
        ConfigError: the parameter that is wrong, and what it should be.
    """
    known_fields = {field.name: field for field in fields(Query)}
    if unknown := sorted(set(given) - set(known_fields)):
        raise ConfigError(f"{unknown[0]}: no such filter; there are {', '.join(known_fields)}")
    values: dict[str, Any] = {name: text for name, text in given.items() if text}
    for name, read, what in (
        ("page", int, "a number from 1"),
        ("per", int, f"a number from 1 to {MOST_A_PAGE}"),
        ("min_size", float, "points of the service's CPU, such as 0.5"),
        ("min_servers", float, "a number of servers, such as 2"),
    ):
        if name in values:
            values[name] = _number(name, values[name], read, what)
    query = Query(**values)
    if not 1 <= query.per <= MOST_A_PAGE:
        raise ConfigError(f"per: should be a number from 1 to {MOST_A_PAGE}")
    if query.page < 1:
        raise ConfigError("page: should be a number from 1")
    _one_of("state", query.state, ("open", "all", *STATES))
    _one_of("sort", query.sort.removeprefix("-"), SORTS)
    if query.age:
        _age_s(query.age)
    return query


def read_time(given: Mapping[str, str], name: str, fallback: float) -> float:
    """Read a time of a URL, epoch seconds.

    Raises:
        ConfigError: it is no time, or one that no message can have.
    """
    if not given.get(name):
        return fallback
    try:
        time = from_iso(given[name])
    except (InvalidMessage, OverflowError) as error:
        raise ConfigError(f"{name}: {error}") from None
    if not EARLIEST_S <= time < LATEST_S:
        raise ConfigError(f"{name}: should be between 2000 and 2100, not {given[name][:40]!r}")
    return time


def matching(items: Iterable[Item], query: Query, *, now: float) -> list[Item]:
    """Return the items that match a query, in its order."""
    states = OPEN if query.state == "open" else tuple(STATES) if query.state == "all" else (query.state,)
    since = now - _age_s(query.age) if query.age else float("-inf")
    words = query.search.casefold().split()
    matches = [
        item
        for item in items
        if item.state in states
        and query.service in ("", item.service)
        and query.workload in ("", item.workload)
        and query.owner in ("", item.author)
        and (not query.release or query.release in (*item.releases, item.suspect_id))
        and item.detected_time >= since
        and (not query.min_size or (is_gcpu(item.metric_kind) and abs(item.delta) * 100 >= query.min_size))
        and (not query.min_servers or (item.waste_servers or 0.0) >= query.min_servers)
        and (not words or _says(item, words))
    ]
    column = query.sort.removeprefix("-")
    matches.sort(key=SORTS[column], reverse=(column in _DESCENDING) != query.sort.startswith("-"))
    return matches


def page_of(items: Sequence[Item], query: Query) -> Page:
    """Return the page of a query; a page beyond the last is the last."""
    pages = max(1, -(-len(items) // query.per))
    first = (min(query.page, pages) - 1) * query.per
    shown = tuple(items[first : first + query.per])
    return Page(shown, len(items), first + 1 if shown else 0, pages)


def _says(item: Item, words: Sequence[str]) -> bool:
    text = f"{item.metric} {item.service} {item.suspect} {item.suspect_id} {item.author}".casefold()
    return all(word in text for word in words)


def _age_s(text: str) -> float:
    try:
        return parse_duration_s(text)
    except ValueError as error:
        raise ConfigError(f"age: {error}") from None


def _number(name: str, text: str, read: Callable[[str], Any], what: str) -> Any:
    try:
        return read(text)
    except ValueError:
        raise ConfigError(f"{name}: should be {what}, not {text[:40]!r}") from None


def _one_of(name: str, value: str, choices: Iterable[str]) -> None:
    if value not in choices:
        raise ConfigError(f"{name}: should be one of {', '.join(choices)}, not {value[:40]!r}")
