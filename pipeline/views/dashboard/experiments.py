"""Experiments: the list of finished and running ones, and all data of a single one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

from pipeline.experiments.trials import Experiment, ExperimentState, standing_of
from pipeline.experiments.trials.experiment import OVERDUE_S
from pipeline.messages.events import decode_event
from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.messages.trials import side_of_row
from pipeline.model.errors import ConfigError
from pipeline.storage.interface import RowQuery, Store

RUNNING = "running"
"""Verdict of a running experiment that has none yet."""

VERDICTS = ("fail", "not enough", "pass", RUNNING)

PAGE = 50

_EVER = (EARLIEST_S, LATEST_S)
_INSTANT_S = 0.001
"""The store's times have milliseconds."""


@dataclass(frozen=True, slots=True)
class TrialQuery:
    """Filter of a list of experiments. Empty matches all; the names are those of the URL."""

    service: str = ""
    verdict: str = ""  # one of VERDICTS
    page: int = 1

    def url(self, **changed: Any) -> str:
        """Return the address of the list with some parameters changed; defaults are left out."""
        query = replace(self, **changed)
        parameters = {
            f.name: getattr(query, f.name) for f in fields(self) if getattr(query, f.name) != f.default
        }
        return f"/trials?{urlencode(parameters)}" if parameters else "/trials"


@dataclass(frozen=True, slots=True)
class ExperimentLine:
    """One experiment of the list. ``time`` is when its last trial ended, epoch seconds."""

    service: str
    name: str
    time: float
    verdict: str  # one of VERDICTS
    trials: int = 0  # whole trials
    expected: int = 0  # 0: unknown
    data: Mapping[str, Any] | None = None  # of the event; None without a verdict


@dataclass(frozen=True, slots=True)
class ExperimentList:
    """One page of the list, the latest first, and the values to filter by."""

    lines: tuple[ExperimentLine, ...]
    total: int  # on all pages
    pages: int
    page: int
    counts: Mapping[str, int]  # by verdict, of the shown service
    services: tuple[str, ...]


def read_query(given: Mapping[str, str]) -> TrialQuery:
    """Read the query of a URL.

    Raises:
        ConfigError: the parameter that is wrong, and what it should be.
    """
    names = [field.name for field in fields(TrialQuery)]
    if unknown := sorted(set(given) - set(names)):
        raise ConfigError(f"{unknown[0]}: no such filter; there are {', '.join(names)}")
    verdict, page = given.get("verdict", ""), given.get("page") or "1"
    if verdict and verdict not in VERDICTS:
        raise ConfigError(f"verdict: should be one of {', '.join(VERDICTS)}, not {verdict[:40]!r}")
    if not (is_number(page) and int(page)):
        raise ConfigError(f"page: should be a number from 1, not {page[:40]!r}")
    return TrialQuery(given.get("service", ""), verdict, int(page))


def is_number(text: str) -> bool:
    """Return whether a text of a URL is a whole number from 0 that the store can hold."""
    return text.isascii() and text.isdigit() and len(text) < 10


def read_list(store: Store, query: TrialQuery, now: float) -> ExperimentList:
    """Read one page of the list: all experiments are sorted and counted, events are read of the page's.

    Raises:
        StoreUnavailable: the store did not answer.
    """
    judged = _latest_verdicts(store)
    started = [
        _line(standing)
        for standing in _started(store, now)
        if standing.kind == "A/B" and (standing.experiment.service, standing.experiment.name) not in judged
    ]
    lines = [*judged.values(), *started]
    services = tuple(sorted({line.service for line in lines}))
    of_service = [line for line in lines if query.service in ("", line.service)]
    counts = Counter(line.verdict for line in of_service)
    matches = [line for line in of_service if query.verdict in ("", line.verdict)]
    matches.sort(key=lambda line: (-line.time, line.service, line.name))
    pages = max(1, -(-len(matches) // PAGE))
    page = min(query.page, pages)
    shown = matches[(page - 1) * PAGE : page * PAGE]
    return ExperimentList(
        _with_events(store, query, shown),
        len(matches),
        pages,
        page,
        {verdict: counts[verdict] for verdict in VERDICTS},
        services,
    )


@dataclass(frozen=True, slots=True)
class ExperimentPage:
    """All data of one experiment; ``event`` is the shown verdict, None without one."""

    service: str
    name: str
    standing: ExperimentState | None  # None once the store has forgotten its trials
    events: tuple[Mapping[str, Any], ...]  # every revision, the latest first
    event: Mapping[str, Any] | None

    @property
    def is_latest(self) -> bool:
        """Whether the shown verdict is in force."""
        return not self.events or self.event is self.events[0]


def read_experiment(
    store: Store, service: str, name: str, revision: int | None = None
) -> ExperimentPage | None:
    """Read an experiment with its verdict, the latest unless a revision is named; None if there is none.

    Raises:
        InvalidMessage: what is stored cannot be read.
        StoreUnavailable: the store did not answer.
    """
    columns = ("revision", "event")
    rows = store.rows(
        RowQuery("trial_verdicts", service, columns=columns, equal={"experiment": name, "state": "published"})
    )
    by_revision = {int(row["revision"]): row["event"] for row in rows}
    events = tuple(decode_event(by_revision[one].encode()) for one in sorted(by_revision, reverse=True))
    sides = store.rows(RowQuery("trials", service, equal={"experiment": name}))
    if not events and not sides:
        return None
    standing = _standing(service, name, sides) if sides else None
    chosen = [one for one in events if revision in (None, one["data"]["revision"])]
    if events and not chosen:
        return None
    return ExperimentPage(service, name, standing, events, chosen[0] if chosen else None)


def _latest_verdicts(store: Store) -> dict[tuple[str, str], ExperimentLine]:
    columns = ("service", "experiment", "revision", "decision")
    rows = store.rows(RowQuery("trial_verdicts", None, columns=columns, equal={"state": "published"}))
    latest: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["revision"]):
        latest[row["service"], row["experiment"]] = row
    return {key: ExperimentLine(*key, row["time"], row["decision"]) for key, row in latest.items()}


def _started(store: Store, now: float) -> list[ExperimentState]:
    """Return experiments with a trial within the time after which they are overdue."""
    sides: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in store.rows(RowQuery("trials", None, now - OVERDUE_S, now + OVERDUE_S)):
        sides[row["service"], row["experiment"]].append(row)
    return [_standing(*key, rows) for key, rows in sides.items()]


def _standing(service: str, name: str, rows: Sequence[Mapping[str, Any]]) -> ExperimentState:
    sides = tuple(map(side_of_row, rows))
    return standing_of(Experiment(service, name, sides), max(side.time for side in sides))


def _line(standing: ExperimentState) -> ExperimentLine:
    experiment, whole = standing.experiment, len(standing.whole)
    return ExperimentLine(
        experiment.service, experiment.name, standing.last_time, RUNNING, whole, standing.expected
    )


def _with_events(
    store: Store, query: TrialQuery, lines: Sequence[ExperimentLine]
) -> tuple[ExperimentLine, ...]:
    """Add the data of events to lines that have a verdict, in one query for all of them."""
    times = [line.time for line in lines if line.verdict != RUNNING]
    if not times:
        return tuple(lines)
    start, end = min(times), max(times) + _INSTANT_S
    wanted = {"state": "published", **({"decision": query.verdict} if query.verdict else {})}
    columns = ("service", "experiment", "revision", "event")
    rows = store.rows(
        RowQuery("trial_verdicts", query.service or None, start, end, columns=columns, equal=wanted)
    )
    events: dict[tuple[str, str], str] = {}
    for row in sorted(rows, key=lambda row: row["revision"]):
        events[row["service"], row["experiment"]] = row["event"]
    return tuple(_with_event(line, events.get((line.service, line.name))) for line in lines)


def _with_event(line: ExperimentLine, event: str | None) -> ExperimentLine:
    if event is None or line.verdict == RUNNING:
        return line
    data = decode_event(event.encode())["data"]
    return replace(line, trials=data["trials"], expected=data["expected_trials"] or 0, data=data)
