"""Input of the comparison of two settings: the ledger's candidates in a span, and verdicts on events."""

from __future__ import annotations

from pipeline.analysis.feedback.comparison import (
    TRIED,
    EventAnswer,
    LedgerCandidate,
    RegressionLine,
    TriedBounds,
    compare_settings,
)
from pipeline.messages.ledger import entry_from_row
from pipeline.model import SeriesKey
from pipeline.model.steps import FUNNEL
from pipeline.settings.workloads import Workload
from pipeline.stages.gather.reported import gather_answered
from pipeline.storage.interface import RowQuery, Store

AFTER = ("", *FUNNEL[FUNNEL.index(TRIED[0]) :])
"""Steps of the ledger whose rows a bound of threshold or significance could change; "" is reported ones."""

_COLUMNS = (
    *("id", "service", "workload", "time", "scan_start", "analysis_start", "analysis_end", "metric_kind"),
    *("metric", "kind", "change_time", "before", "after", "p_value", "statistic", "step", "value", "bound"),
    *("code", "subjects"),
)


def setting_of(
    workload: Workload, threshold: float | None = None, by_chance: float | None = None
) -> TriedBounds:
    """Return a workload's setting, with the given bounds instead of its own."""
    bounds = workload.threshold
    setting = (
        TriedBounds("relative", bounds.relative or 0.0)
        if bounds.absolute is None
        else TriedBounds("absolute", bounds.absolute)
    )
    return TriedBounds(
        setting.measure,
        setting.threshold if threshold is None else threshold,
        setting.by_chance if by_chance is None else by_chance,
    )


def gather_comparison(
    store: Store,
    workload: Workload,
    service: str | None,
    span: tuple[float, float],
    settings: tuple[TriedBounds, TriedBounds],
) -> tuple[RegressionLine, ...]:
    """Return what each of two settings reports of the scans that end in a span [start, end).

    Args:
        store: Holds the ledger.
        workload: Workload of the scans.
        service: One service; None for all.
        span: Epoch seconds.
        settings: The left and the right setting.

    Raises:
        InvalidMessage: an unknown version wrote a row.
        StoreUnavailable: the store did not answer.
    """
    return compare_settings(
        _candidates(store, workload.name, service, span),
        *settings,
        same_s=workload.analysis_s,
        answers=_answers(store, service),
    )


def _candidates(
    store: Store, workload: str, service: str | None, span: tuple[float, float]
) -> list[LedgerCandidate]:
    scanned = {
        (row["service"], row["time"]): int(row["series"])
        for row in store.rows(RowQuery("scans", service, *span, equal={"workload": workload}))
    }
    candidates = []
    for step in AFTER:
        for row in store.rows(
            RowQuery("ledger", service, *span, columns=_COLUMNS, equal={"workload": workload, "step": step})
        ):
            entry = entry_from_row(row)
            series = scanned.get((row["service"], row["time"]), 0)
            candidates.append(
                LedgerCandidate(
                    entry.id, row["service"], workload, entry.candidate, row["time"], series, row["step"]
                )
            )
    return candidates


def _answers(store: Store, service: str | None) -> list[EventAnswer]:
    return [
        EventAnswer(
            answered.reported.id,
            answered.reported.service,
            SeriesKey(answered.reported.metric_kind, answered.reported.metric),
            answered.reported.change_time,
            answered.state,
            answered.cause,
        )
        for answered in gather_answered(store, service)
    ]
