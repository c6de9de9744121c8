"""What answers say of settings: precision, and the thresholds that they propose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import click
import orjson

from pipeline.clock import system_clock
from pipeline.codec.fields import EARLIEST_S
from pipeline.commands.options import Moment, settings_options
from pipeline.config import Settings
from pipeline.feedback import (
    Judged,
    Precision,
    Proposal,
    Share,
    precision_table,
    propose_thresholds,
)
from pipeline.feedback.thresholds import Measure
from pipeline.stages.gather.reported import Answered, gather_answered
from pipeline.storage.connect import open_store
from pipeline.terminal import escape_controls
from pipeline.units import DAY_S
from pipeline.workloads import Workload, known_workloads

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
@click.option("--json", "as_json", is_flag=True, help="One proposal a line, with the ROC of each setting.")
@settings_options("store", "workloads")
def thresholds(settings: Settings, service: str | None, since: float, as_json: bool) -> None:
    """Propose thresholds: as high as keeps every event that is right, by workload and service.

    Shows what each would have changed in the last month, and how well size and significance part right
    from wrong (the area under the ROC curve: 0.5 is chance).
    """
    now = system_clock()
    with closing(open_store(settings.store, existing=True)) as store:
        answered = gather_answered(store, service, since, all_events=True)
    recent = [one.reported for one in answered if now - MONTH_S <= one.reported.detected_time]
    present = {name: _threshold(one) for name, one in known_workloads(settings.workloads).items()}
    proposals = propose_thresholds(judged_of(answered), recent, present)
    by_id = {one.reported.id: one for one in answered}
    for one in proposals:
        if as_json:
            click.echo(orjson.dumps(_proposal_json(one)))
        else:
            click.echo(_proposal_line(one, by_id))
    if not proposals and not as_json:
        click.echo("no event has an answer that says whether it is right")


def judged_of(answered: Sequence[Answered]) -> list[Judged]:
    """Return the events of which people said whether they are right."""
    return [judged for one in answered if (judged := one.judged)]


def _threshold(workload: Workload) -> tuple[Measure, float]:
    asked = workload.threshold
    if asked.absolute is not None:
        return "absolute", asked.absolute
    assert asked.relative is not None  # exactly one of the two is there
    return "relative", asked.relative


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


def _proposal_line(one: Proposal, by_id: dict[str, Answered]) -> str:
    head = f"{one.workload}  {one.service}  {one.measure}  {one.present:g}"
    areas = ", ".join(f"{each.setting} {each.area:.2f}" for each in one.rocs if not math.isnan(each.area))
    tail = f"; ROC: {areas}" if areas else ""
    if one.proposed is None:
        return escape_controls(
            f"{head}  stays: {one.kept.of} right and {one.dropped.of} wrong ones are too few, "
            f"or no higher one would drop any{tail}"
        )
    states = [by_id[event].judged for event in one.changed]
    wrong = sum(each is not None and not each.right for each in states)
    low = one.kept.interval[0]
    return escape_controls(
        f"{head} → {one.proposed:.3g}  keeps {one.kept.hits} of {one.kept.of} right ones (at least "
        f"{low * 100:.0f} % of all, 95 %), drops {_share(one.dropped)} wrong ones; last month: "
        f"{len(one.changed)} of {one.recent} events fewer, {wrong} of them wrong{tail}"
    )


def _share_json(one: Share) -> dict[str, Any]:
    return {"hits": one.hits, "of": one.of, "share": one.share, "interval": one.interval}


def _proposal_json(one: Proposal) -> dict[str, Any]:
    return {
        **{"workload": one.workload, "service": one.service, "measure": one.measure},
        **{"present": one.present, "proposed": one.proposed},
        **{"kept": _share_json(one.kept), "dropped": _share_json(one.dropped)},
        **{"last_month": one.recent, "last_month_dropped": one.changed},
        "roc": [
            {
                "setting": each.setting,
                "area": each.area,
                "points": [{"bound": p.bound, "kept": p.kept, "passed": p.passed} for p in each.points],
            }
            for each in one.rocs
        ],
    }
