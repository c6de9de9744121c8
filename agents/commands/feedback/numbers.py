"""Precision of reports by people's answers, and the thresholds that the answers propose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import click

from agents.commands.feedback.options import events_service_option, since_option
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
from pipeline.commands.options import settings_options
from pipeline.commands.request import json_option, option, takes
from pipeline.commands.tables import print_json, print_json_lines
from pipeline.commands.terminal import escape_controls, print_lines
from pipeline.model.clock import system_clock
from pipeline.model.units import DAY_S
from pipeline.settings.config import Settings
from pipeline.settings.workloads import known_workloads
from pipeline.stages.gather.reported import Answered, gather_answered
from pipeline.stages.gather.tried_settings import gather_comparison, setting_of
from pipeline.storage.connect import open_store

MONTH_S = 30 * DAY_S


@click.command()
@takes
def precision(
    service: str | None = events_service_option,
    since: float = since_option,
    as_json: bool = json_option(help="Print one group of events a line."),
    settings: Settings = settings_options("store"),
) -> None:
    """Say which share of the answered events is right: in all, by service, workload and step.

    true, expected, fixed and a named cause are right; false, cost-shift and duplicate are wrong. Of a step
    the events count that it let through, and once more the half that was nearest to its bound.
    """
    with closing(open_store(settings.store, existing=True)) as store:
        table = precision_table(judged_of(gather_answered(store, service, since)))
    if as_json:
        print_json_lines({"by": row.by, "name": row.name, **_share_json(row.right)} for row in table)
    elif table:
        print_lines(_precision_lines(table))
    else:
        click.echo("no event has an answer that says whether it is right")


@click.command()
@takes
def thresholds(
    service: str | None = events_service_option,
    since: float = since_option,
    keep: float = option(1.0, least=0.5, most=1, help="Least share of the right events that stay."),
    as_json: bool = json_option(help="Print one proposal a line, with the ROC of each setting."),
    settings: Settings = settings_options("store", "workloads"),
) -> None:
    """Propose thresholds: as high as keeps every event that is right, by workload and service.

    Shows what each would have changed in the last month by the ledger (`smidgen feedback compare` has the
    lines), and how well size and significance part right from wrong (the area under the ROC curve: 0.5 is
    chance). With a smaller --keep some right events go, too, and more of the wrong ones.
    """
    now = system_clock()
    workloads = known_workloads(settings.workloads)
    present = {name: setting_of(row) for name, row in workloads.items()}
    with closing(open_store(settings.store, existing=True)) as store:
        judged = judged_of(gather_answered(store, service, since))
        proposals = propose_thresholds(
            judged,
            {name: (row.measure, row.threshold) for name, row in present.items()},
            ThresholdConfig(keep=keep),
        )
        for row in proposals:
            last_month: tuple[Line, ...] = ()
            if row.proposed is not None:
                now_set = present[row.workload]
                settings_tried = (now_set, replace(now_set, threshold=row.proposed))
                span = (now - MONTH_S, now)
                last_month = gather_comparison(
                    store, workloads[row.workload], row.service, span, settings_tried
                )
            if as_json:
                print_json(_proposal_json(row, last_month))
            else:
                print_lines([_proposal_line(row, last_month)])
    if not proposals and not as_json:
        click.echo("no event has an answer that says whether it is right")


def judged_of(answered: Sequence[Answered]) -> list[Judged]:
    """Return the events of which people said whether they are right."""
    return [judged for event in answered if (judged := event.judged)]


def _precision_lines(table: Sequence[Precision]) -> list[str]:
    names = [escape_controls(row.name or "every event") for row in table]
    width = max(map(len, names))
    return [
        f"{row.by:<20}  {name:<{width}}  {_share(row.right)}" for row, name in zip(table, names, strict=True)
    ]


def _share(share: Share) -> str:
    low, high = share.interval
    shown = "–" if math.isnan(share.share) else f"{share.share * 100:.0f} %"
    return f"{share.hits} of {share.of}  {shown}  ({low * 100:.0f}–{high * 100:.0f} %)"


def _proposal_line(proposal: Proposal, last_month: Sequence[Line]) -> str:
    head = f"{proposal.workload}  {proposal.service}  {proposal.measure}  {proposal.present:g}"
    areas = ", ".join(f"{roc.setting} {roc.area:.2f}" for roc in proposal.rocs if not math.isnan(roc.area))
    tail = f"; ROC: {areas}" if areas else ""
    if proposal.proposed is None:
        return (
            f"{head}  stays: {proposal.kept.of} right and {proposal.dropped.of} wrong ones are too few, "
            f"or no higher one would drop any{tail}"
        )
    gone = tally(fewer(last_month))
    reported = sum(line.first.fate == "reported" for line in last_month)
    low = proposal.kept.interval[0]
    return (
        f"{head} → {proposal.proposed:.3g}  keeps {proposal.kept.hits} of {proposal.kept.of} "
        f"right ones (at least "
        f"{low * 100:.0f} % of all, 95 %), drops {_share(proposal.dropped)} wrong ones; last month: "
        f"{gone.lines} of {reported} events fewer, {gone.wrong} of them wrong, {gone.right} right{tail}"
    )


def _share_json(share: Share) -> dict[str, Any]:
    return {"hits": share.hits, "of": share.of, "share": share.share, "interval": share.interval}


def _proposal_json(proposal: Proposal, last_month: Sequence[Line]) -> dict[str, Any]:
    return {
        **{"workload": proposal.workload, "service": proposal.service, "measure": proposal.measure},
        **{"present": proposal.present, "proposed": proposal.proposed},
        **{"kept": _share_json(proposal.kept), "dropped": _share_json(proposal.dropped)},
        "last_month": sum(line.first.fate == "reported" for line in last_month),
        "last_month_dropped": [line.shown.id for line in fewer(last_month)],
        "roc": [
            {
                "setting": roc.setting,
                "area": roc.area,
                "points": [{"bound": p.bound, "kept": p.kept, "passed": p.passed} for p in roc.points],
            }
            for roc in proposal.rocs
        ],
    }
