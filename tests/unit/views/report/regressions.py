"""Regressions with series and stacks, in messages and in a store, and their pages."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import numpy as np
import orjson

from pipeline.messages.events import regression_event, regression_id
from pipeline.model import Candidate, Change, MetricKind, Regression, SeriesMatrix, StackMatrix, Suspect
from pipeline.settings.workloads import Workload
from pipeline.storage.interface import Store
from pipeline.views.report.page import ReportData, render_report
from pipeline.views.report.windows import scan_windows
from tests.support.builders import build_stacks

START = 1_700_000_000.0

CHANGE = START + 42.0

END = START + 55.0


def candidate(metric: str = "shop.rank", kind: MetricKind = "subroutine", **changes: object) -> Candidate:
    found = Candidate(
        metric_kind=kind,
        metric=metric,
        kind="short_term",
        change_time=CHANGE,
        before=0.04,
        after=0.12,
        p_value=1e-9,
        statistic=50.0,
    )
    return replace(found, **changes)  # type: ignore[arg-type]  # tests name the fields


def regression(found: Candidate, *suspects: Suspect, service: str = "shop") -> Regression:
    return Regression(regression_id(service, "live", found, END), service, "live", found, END, suspects)


def suspect(text: str = "Search: keep hits in order", sha: str = "f67ada14f", score: float = 0.93) -> Suspect:
    change = Change(sha, "shop", CHANGE - 2, text, "Daniel", text, ("shop/search.py",), ("shop.rank",))
    return Suspect(change, score, {"attribution": 0.98})


def series(*names: tuple[MetricKind, str], windows: int = 60) -> SeriesMatrix:
    level = np.where(np.arange(windows) < 42, 8.0, 24.0)
    return SeriesMatrix(
        start=START,
        resolution_s=1.0,
        kinds=tuple(kind for kind, _ in names),
        names=tuple(name for _, name in names),
        samples=np.tile(level, (len(names), 1)),
        totals=np.full(windows, 200.0),
    )


STACKS = build_stacks(
    {"main->loop->search->rank": (4, 12), "main->loop->search": (6, 6), "main->loop->feed": (90, 82)}
)

NO_STACKS = StackMatrix((), np.empty(0), np.empty(0), 0.0, 0.0)


def page(
    found: Regression, live: Workload, matrix: SeriesMatrix | None = None, stacks: StackMatrix = STACKS
) -> str:
    event = regression_event(found)
    if matrix is None:
        matrix = series((found.candidate.metric_kind, found.candidate.metric))
    return render_report(ReportData(event, scan_windows(event, live), matrix, stacks))


def visible(text: str) -> str:
    """Return what stands outside scripts and styles, with entities decoded."""
    bare = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", bare)).split())


def plots(text: str) -> list[str]:
    return re.findall(r'id="figure-(\w+)"', text)


def insert_regression(store: Store, found: Regression) -> None:
    windows = [START + second for second in range(60)]
    held = [8 if window < CHANGE else 24 for window in windows]

    def head(times: list[float]) -> dict[str, list[object]]:
        position = {"stream": "test", "topic": "profiles", "partition": 0, "last_offset": 1}
        same = {name: [value] * len(times) for name, value in {"service": found.service, **position}.items()}
        return {**same, "window": list(times)}

    store.insert("totals", {**head(windows), "samples": [200] * 60})
    series_of = {"kind": ["subroutine"] * 60, "subroutine": ["shop.rank"] * 60}
    store.insert("gcpu", {**head(windows), **series_of, "samples": held})
    coarse = windows[::5] * 2
    store.insert(
        "stacks",
        {
            **head(coarse),
            "width_s": [5.0] * 24,
            "stack_id": [1] * 12 + [2] * 12,
            "frames": [["main", "shop.rank"]] * 12 + [["main", "shop.feed"]] * 12,
            "samples": [5 * count for count in held[::5]] + [1000 - 5 * count for count in held[::5]],
        },
    )
    row = {
        "id": found.id,
        "service": found.service,
        "workload": found.workload,
        "metric_kind": found.candidate.metric_kind,
        "metric": found.candidate.metric,
        "time": found.candidate.change_time,
        "detected_time": found.detected_time,
        "before": found.candidate.before,
        "after": found.candidate.after,
        "delta": found.candidate.delta,
        "p_value": found.candidate.p_value,
        "event": orjson.dumps(regression_event(found)).decode(),
    }
    store.insert("regressions", {name: [value] for name, value in row.items()})
