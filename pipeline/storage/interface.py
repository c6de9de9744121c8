"""The interface of a store, as stages need it; every implementation passes the same contract suite."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar, final, get_args

from pipeline.counting.quota.limits import Usage
from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.model import RequestPeriods, SeriesKey, SeriesMatrix, StackMatrix, StrataMatrix

CountTable = Literal[
    "totals", "gcpu", "stacks", "strata_totals", "strata_gcpu", "strata_stacks", "metrics", "requests"
]
"""Tables of additive rows, which carry their position in the log (stream, topic, partition, last_offset)."""


RowTable = Literal[
    "changes",
    "regressions",
    "updates",
    "ledger",
    "scans",
    "unjudged",
    "memory",
    "names",
    "naming",
    "symbols",
    "strata",
    "metric_metadata",
    "silences",
    "silenced",
    "verdicts",
    "logs",
    "positions",
    "outcomes",
    "alerts",
    "trials",
    "trial_points",
    "trial_verdicts",
    "trial_models",
]
"""Tables of rows with an identity and a time."""

Table = CountTable | RowTable

StrataSides = tuple[Collection[int], Collection[int]]
"""Ids of the strata of the span before, and of those of the span after."""

SeriesSource = Literal["gcpu", "service", "setup"]
"""Source of series: stack samples, service-level metrics or set-up metrics."""

COUNTED: tuple[CountTable, ...] = get_args(CountTable)


class Extent(NamedTuple):
    """Progress of the rows of one partition of a log."""

    last_offset: int  # the highest offset that the rows cover
    last_time: float = 0.0  # start of a service's last window, or time of its last point; 0 of all services


class Extents(dict[tuple[str, int], Extent]):
    """Progress of rows by topic and partition, with the time of the question by the store's own clock."""

    def __init__(self, extents: Mapping[tuple[str, int], Extent], asked_at: float) -> None:
        super().__init__(extents)
        self.asked_at = asked_at


UsageByPeriod = dict[tuple[str, float], Usage]
"""Messages and stacks by service and start of the period."""

Answer = TypeVar("Answer", StackMatrix, StrataMatrix, RequestPeriods, UsageByPeriod, float)
"""The type of the answer to a ``CountQuery``."""


@dataclass(frozen=True, slots=True)
class SeriesQuery:
    """Series of a service in [start, end) by windows, sorted by kind and name.

    ``gcpu`` gives subroutines, endpoints and metadata; ``service`` the service-level metrics, set-up
    metrics left out; ``setup`` the set-up metrics alone, whose kind is ``service`` too. A series without
    data in the span is absent. Totals are the service's in any case.
    """

    source: SeriesSource
    service: str
    start: float
    end: float
    resolution_s: float
    names: Sequence[SeriesKey] | None = None  # the series to read; None is all
    rolls_up: bool = False
    """True if the store keeps the gCPU counts of the whole windows for the next such query.

    The answer is the same, late and repeated samples included, but faster.
    """


@dataclass(frozen=True, slots=True)
class RowQuery:
    """Rows with a time in [start, end), oldest first; ``service`` None asks for those of every service."""

    table: RowTable
    service: str | None
    start: float = EARLIEST_S
    end: float = LATEST_S
    id_prefix: str = ""
    columns: Sequence[str] = ()  # read only these and the time; empty is all
    equal: Mapping[str, str] = field(default_factory=dict)  # values of columns


class CountQuery(Generic[Answer]):
    """A query of counts; each subclass has its own type of answer."""

    __slots__ = ()


@final
@dataclass(frozen=True, slots=True)
class StackQuery(CountQuery[StackMatrix]):
    """Stack counts in two spans [start, end); a window counts if it lies wholly inside.

    With ``strata``, only counts of the given strata (by id) of each span, in the longer windows of counts by
    stratum. A stack whose frames are no longer stored is ``(other)``.
    """

    service: str
    before: tuple[float, float]
    after: tuple[float, float]
    strata: StrataSides | None = None


@final
@dataclass(frozen=True, slots=True)
class StrataQuery(CountQuery[StrataMatrix]):
    """The senders of a service's samples in [start, end): totals by window, counts of series over the span.

    Strata are those with a total in the span, sorted. Counts are from the windows of ``strata_gcpu`` wholly
    inside the span; with ``names``, of those series only. A service with unknown senders has no stratum.
    """

    service: str
    start: float
    end: float
    resolution_s: float
    names: Sequence[SeriesKey] | None = None


@final
@dataclass(frozen=True, slots=True)
class StrataWidthQuery(CountQuery[float]):
    """The width in seconds of the last window of counts by stratum that begins before ``end``; 0 if none."""

    service: str
    end: float


@final
@dataclass(frozen=True, slots=True)
class RequestQuery(CountQuery[RequestPeriods]):
    """The requests of a service in periods that begin in [start, end).

    The answer has all releases with their types added up, or with ``releases`` those releases by type.
    Periods shorter than ``step_s`` are added up to that length.
    """

    service: str
    start: float
    end: float
    releases: Sequence[str] | None = None
    step_s: float = 0.0


@final
@dataclass(frozen=True, slots=True)
class UsageQuery(CountQuery[UsageByPeriod]):
    """The usage of services in a span [start, end), as ``totals`` counted it, from one partition of a topic.

    Periods are multiples of ``period_s``; a period without a message is absent, and refused messages are not
    counted.
    """

    stream: str
    topic: str
    partition: int
    services: Iterable[str]
    span: tuple[float, float]
    period_s: float


class Store(Protocol):
    """Bulk verbs over the tables of docs/tables.md. Times are epoch seconds.

    Every verb may raise StoreUnavailable, after which the same call can simply be repeated.
    """

    def insert(
        self,
        table: Table,
        columns: Mapping[str, Sequence[Any]],
        *,
        token: str = "",
        asked_at: float | None = None,
    ) -> None:
        """Add rows, all or none. ``columns`` maps a column to its values, all equally many.

        A repeated insert with the same non-empty ``token`` adds nothing. Rows of RowTable
        replace those of the same identity; ``outcomes`` keeps the first row, ``verdicts`` the one with the
        latest time. ``asked_at`` is that of the ``Extents`` which rows of a CountTable continue. It keeps out
        a sender that was suspended meanwhile: a shared store accepts the rows within 30 seconds of it, and
        raises StoreUnavailable afterwards.
        """

    def extents(
        self, tables: Collection[CountTable], stream: str, service: str | None = None
    ) -> dict[CountTable, Extents]:
        """Return the progress of the rows of one service, or of all, in tables, by topic and partition.

        ``stream`` is the identity of the log: a log that was created anew has no progress. A partition
        without rows is absent.

        Raises:
            ValueError: a table keeps no offsets.
        """

    def rows(self, query: RowQuery) -> list[dict[str, Any]]:
        """Return rows of a table."""

    def series(self, query: SeriesQuery) -> SeriesMatrix:
        """Return series × windows; window j starts at ``start + j * resolution_s``."""

    def counts(self, query: CountQuery[Answer]) -> Answer:
        """Return the answer to a query of counts: stacks, senders, requests, or usage of quotas."""
