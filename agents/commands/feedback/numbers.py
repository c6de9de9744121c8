"""What answers say of settings: precision, and the thresholds that they propose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import click
import orjson

from pipeline.analysis.feedback import (
    Judged,
    Precision,
    Proposal,
    Share,
    ThresholdConfig,
    precision_table,
    propose_thresholds,
)
from pipeline.analysis.feedback.comparison import Line, fewer, tally
from pipeline.commands.options import FiniteRange, Moment, settings_options
from pipeline.commands.terminal import escape_controls
from pipeline.messages.fields import EARLIEST_S
from pipeline.model.clock import system_clock
from pipeline.model.units import DAY_S
from pipeline.settings.config import Settings
from pipeline.settings.workloads import known_workloads
from pipeline.stages.gather.reported import Answered, gather_answered
from pipeline.stages.gather.tried_settings import gather_comparison, setting_of
from pipeline.storage.connect import open_store

MONTH_S = 30 * DAY_S

_service = click.option("--service", metavar="S", help="Of its events (default: of every service).")
_since = click.option(
    "--since", type=Moment(), default=EARLIEST_S, help="Change times since then: 90d, or ISO 8601."
)


@click.command()
@_service
@_since
@click.option("--json", "as_json", is_flag=True, help="One group of events a line.")
@settings_options("store")
def precision(settings: Settings, service: str | None, since: float, as_json: bool) -> None:
    """Say which share of the answered events is right: in all, by service, workload and step.

    true, expected, fixed and a named cause are right; false, cost-shift and duplicate are wrong. Of a step
    the events count that it let through, and once more the half that was nearest to its bound.
    """
    with closing(open_store(settings.store, existing=True)) as store:
        table = precision_table(judged_of(gather_answered(store, service, since)))
    if as_json:
        for one in table:
            click.echo(orjson.dumps({"by": one.by, "name": one.name, **_share_json(one.right)}))
    elif table:
        click.echo("\n".join(_precision_lines(table)))
    else:
        click.echo("no event has an answer that says whether it is right")


@click.command()
@_service
@_since
@click.option(
    "--keep",
    type=FiniteRange(min=0.5, max=1),
    default=1.0,
    show_default=True,
    help="Share of the right events that stays at least.",
)
@click.option("--json", "as_json", is_flag=True, help="One proposal a line, with the ROC of each setting.")
@settings_options("store", "workloads")
def thresholds(settings: Settings, service: str | None, since: float, keep: float, as_json: bool) -> None:
    """Propose thresholds: as high as keeps every event that is right, by workload and service.

    Shows what each would have changed in the last month by the ledger (`smidgen feedback compare` has the
    lines), and how well size and significance part right from wrong (the area under the ROC curve: 0.5 is
    chance). With a smaller --keep some right events go, too, and more of the wrong ones.
    """
    now = system_clock()
    workloads = known_workloads(settings.workloads)
    present = {name: setting_of(one) for name, one in workloads.items()}
    with closing(open_store(settings.store, existing=True)) as store:
        judged = judged_of(gather_answered(store, service, since))
        proposals = propose_thresholds(
            judged,
            {name: (one.measure, one.threshold) for name, one in present.items()},
            ThresholdConfig(keep=keep),
        )
        for one in proposals:
            last_month: tuple[Line, ...] = ()
            if one.proposed is not None:
                now_set = present[one.workload]
                settings_tried = (now_set, replace(now_set, threshold=one.proposed))
                span = (now - MONTH_S, now)
                last_month = gather_comparison(
                    store, workloads[one.workload], one.service, span, settings_tried
                )
            click.echo(
                orjson.dumps(_proposal_json(one, last_month)) if as_json else _proposal_line(one, last_month)
            )
    if not proposals and not as_json:
        click.echo("no event has an answer that says whether it is right")


def judged_of(answered: Sequence[Answered]) -> list[Judged]:
    """Return the events of which people said whether they are right."""
    return [judged for one in answered if (judged := one.judged)]


def _precision_lines(table: Sequence[Precision]) -> list[str]:
    names = [escape_controls(one.name or "every event") for one in table]
    width = max(map(len, names))
    return [
        f"{one.by:<20}  {name:<{width}}  {_share(one.right)}" for one, name in zip(table, names, strict=True)
    ]


def _share(one: Share) -> str:
    low, high = one.interval
    shown = "–" if math.isnan(one.share) else f"{one.share * 100:.0f} %"
    return f"{one.hits} of {one.of}  {shown}  ({low * 100:.0f}–{high * 100:.0f} %)"


def _proposal_line(one: Proposal, last_month: Sequence[Line]) -> str:
    head = f"{one.workload}  {one.service}  {one.measure}  {one.present:g}"
    areas = ", ".join(f"{each.setting} {each.area:.2f}" for each in one.rocs if not math.isnan(each.area))
    tail = f"; ROC: {areas}" if areas else ""
    if one.proposed is None:
        return escape_controls(
            f"{head}  stays: {one.kept.of} right and {one.dropped.of} wrong ones are too few, "
            f"or no higher one would drop any{tail}"
        )
    gone = tally(fewer(last_month))
    reported = sum(line.first.fate == "reported" for line in last_month)
    low = one.kept.interval[0]
    return escape_controls(
        f"{head} → {one.proposed:.3g}  keeps {one.kept.hits} of {one.kept.of} right ones (at least "
        f"{low * 100:.0f} % of all, 95 %), drops {_share(one.dropped)} wrong ones; last month: "
        f"{gone.lines} of {reported} events fewer, {gone.wrong} of them wrong, {gone.right} right{tail}"
    )


def _share_json(one: Share) -> dict[str, Any]:
    return {"hits": one.hits, "of": one.of, "share": one.share, "interval": one.interval}


def _proposal_json(one: Proposal, last_month: Sequence[Line]) -> dict[str, Any]:
    return {
        **{"workload": one.workload, "service": one.service, "measure": one.measure},
        **{"present": one.present, "proposed": one.proposed},
        **{"kept": _share_json(one.kept), "dropped": _share_json(one.dropped)},
        "last_month": sum(line.first.fate == "reported" for line in last_month),
        "last_month_dropped": [line.shown.id for line in fewer(last_month)],
        "roc": [
            {
                "setting": each.setting,
                "area": each.area,
                "points": [{"bound": p.bound, "kept": p.kept, "passed": p.passed} for p in each.points],
            }
            for each in one.rocs
        ],
    }
