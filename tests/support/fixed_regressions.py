"""Fixed regression of production in a store, with its change and trials."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.analysis.lifecycle import OpenRegression, Update
from pipeline.messages.events import encode_event, regression_event, update_event
from pipeline.messages.inputs import change_to_row
from pipeline.messages.lifecycle import regression_columns, update_columns
from pipeline.messages.records import columns_of
from pipeline.messages.trials import decode_trial, encode_trial, point_rows, side_row
from pipeline.messages.verdicts import verdict_to_row
from pipeline.model import Regression, StackChange, Suspect, TrialMetric, TrialSide, Verdict, VerdictKind
from pipeline.storage.interface import Store
from tests.support.builders import build_candidate, build_change
from tests.support.trial_verdicts import verdict_row

T = 1_700_000_000.0
CAUSE = "abc1234"
"""The release of side B in ``verdict_row``."""


def insert_regression(store: Store, metric: str = "shop.cart", modified: tuple[str, ...] = ()) -> None:
    """Insert a regression of 2 % of CPU, 10 minutes after its only suspect, and later scans."""
    stacks = (StackChange(("shop.main", metric, "shop.price"), 0.1, 0.12),)
    suspect = Suspect(build_change(CAUSE, time=T - 600.0), 0.9, {})
    candidate = build_candidate(metric, before=0.1, after=0.12, change_time=T)
    regression = Regression("r1", "shop", "hours", candidate, T + 3600.0, (suspect,), stacks)
    event = encode_event(regression_event(regression))
    store.insert("regressions", regression_columns([regression], [event]))
    change = build_change(CAUSE, modified, time=T - 600.0)
    store.insert("changes", columns_of([change_to_row(change)]))


def insert_resolution(store: Store, *fixing: str) -> None:
    """Insert the resolution of the regression by some changes."""
    candidate = build_candidate("shop.cart", before=0.1, after=0.12, change_time=T)
    changes = tuple(build_change(name, ["shop.cart"]) for name in fixing)
    update = Update(
        "resolved", OpenRegression("r1", candidate), "shop", "hours", T + 9e4, T + 8e4, 0.1, changes=changes
    )
    store.insert("updates", update_columns([update], [encode_event(update_event(update))]))


def insert_verdict(store: Store, kind: VerdictKind, subject: str = "") -> None:
    """Insert a verdict on the regression."""
    verdict = Verdict("r1", "shop", kind, T + 7200.0, subject=subject)
    store.insert("verdicts", columns_of([verdict_to_row(verdict)]))


def insert_trials(store: Store, experiment: str = "pr-1", same_code: int = 20) -> None:
    """Insert a passed experiment of the cause, and A/A trials of CPU that differ by about 1 %."""
    store.insert("trial_verdicts", columns_of([verdict_row("shop", experiment, T - 3600.0, "pass")]))
    rng = np.random.default_rng(1)
    sides: list[TrialSide] = []
    for number in range(same_code):
        for side in ("A", "B"):
            points = rng.normal(1.0, 0.005, 20) * rng.normal(1.0, 0.007)
            own: dict[str, Any] = {"trial": f"t{number}", "side": side, "kind": "A/A", "time": T + number}
            sent = TrialSide("shop", "same", metrics=(TrialMetric("cpu", points),), **own)
            decoded = decode_trial(encode_trial(sent))
            assert isinstance(decoded, TrialSide)
            sides.append(decoded)
    store.insert("trials", columns_of(map(side_row, sides)))
    store.insert("trial_points", columns_of(row for chosen in sides for row in point_rows(chosen)))
