"""What two settings are compared on: the ledger's candidates of a span, with what people said of events."""

from __future__ import annotations

from pipeline.analysis.feedback.comparison import (
    TRIED,
    Answer,
    LedgerCandidate,
    Line,
    Setting,
    compare_settings,
)
from pipeline.messages.ledger import entry_from_row
from pipeline.model import SeriesKey
from pipeline.model.steps import FUNNEL
from pipeline.settings.workloads import Workload
from pipeline.stages.gather.reported import gather_answered
from pipeline.storage.interface import RowQuery, Store

AFTER = ("", *FUNNEL[FUNNEL.index(TRIED[0]) :])
"""Steps of the ledger's rows that a bound of threshold or significance could change; empty: reported."""

_COLUMNS = (
    *("id", "service", "workload", "time", "scan_start", "analysis_start", "analysis_end", "metric_kind"),
    *("metric", "kind", "change_time", "before", "after", "p_value", "statistic", "step", "value", "bound"),
    *("code", "subjects"),
)


def setting_of(workload: Workload, threshold: float | None = None, by_chance: float | None = None) -> Setting:
    """Return a workload's setting, with another bound where one is given."""
    asked = workload.threshold
    setting = (
        Setting("relative", asked.relative or 0.0)
        if asked.absolute is None
        else Setting("absolute", asked.absolute)
    )
    return Setting(
        setting.measure,
        setting.threshold if threshold is None else threshold,
        setting.by_chance if by_chance is None else by_chance,
    )


def gather_comparison(
    store: Store,
    workload: Workload,
    service: str | None,
    span: tuple[float, float],
    settings: tuple[Setting, Setting],
) -> tuple[Line, ...]:
    """Return what two settings report of the scans that end in a span [start, end).

    Args:
        store: With the ledger.
        workload: Whose scans.
        service: Of one service; None of all.
        span: Epoch seconds.
        settings: The setting on the left, and that on the right.

    Raises:
        InvalidMessage: a row that a version which is not known wrote.
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
    found = []
    for step in AFTER:
        for row in store.rows(
            RowQuery("ledger", service, *span, columns=_COLUMNS, equal={"workload": workload, "step": step})
        ):
            entry = entry_from_row(row)
            series = scanned.get((row["service"], row["time"]), 0)
            found.append(
                LedgerCandidate(
                    entry.id, row["service"], workload, entry.candidate, row["time"], series, row["step"]
                )
            )
    return found


def _answers(store: Store, service: str | None) -> list[Answer]:
    return [
        Answer(
            one.reported.id,
            one.reported.service,
            SeriesKey(one.reported.metric_kind, one.reported.metric),
            one.reported.change_time,
            one.state,
            one.cause,
        )
        for one in gather_answered(store, service)
    ]
