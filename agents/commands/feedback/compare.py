"""Comparison of two settings of a workload, by the candidates that its scans found."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import click

from pipeline.analysis.feedback.comparison import Line, Outcome, Setting, fewer, more, tally
from pipeline.commands.options import settings_options
from pipeline.commands.request import Moment, argument, json_option, option, takes
from pipeline.commands.tables import print_json_lines
from pipeline.commands.terminal import print_lines
from pipeline.files.listing import listed
from pipeline.model.clock import system_clock, to_iso
from pipeline.model.errors import ConfigError
from pipeline.model.units import counted
from pipeline.settings.config import Settings
from pipeline.settings.workloads import Workload, known_workloads
from pipeline.stages.gather.tried_settings import gather_comparison, setting_of
from pipeline.storage.connect import open_store

_EXAMPLES = """\b
Examples:
  smidgen feedback compare live --threshold 0.2              the present setting and another threshold
  smidgen feedback compare live --threshold 0.1 --threshold 0.2
  smidgen feedback compare live --chance 0.001 --service shop --all
"""


@click.command(epilog=_EXAMPLES)
@takes
def compare(
    workload: str = argument(),
    service: str | None = option(metavar="S", help="Service of the scans (default: all)."),
    bounds: tuple[float, ...] = option(
        flag="--threshold",
        above=0,
        help="Threshold of the second setting, in the workload's measure; given twice, of both settings "
        "(default: the present one).",
    ),
    chances: tuple[float, ...] = option(
        flag="--chance",
        above=0,
        help="False change points per scan that significance tolerates; given twice, of both settings.",
    ),
    since: float = option("30d", kind=Moment(), help="Time of the first scan: 30d, or ISO 8601."),
    show_all: bool = option(flag="--all", help="Include lines that do not differ."),
    as_json: bool = json_option(help="Print each line of the list as JSON."),
    settings: Settings = settings_options("store", "workloads"),
) -> int:
    """Say what two settings of WORKLOAD report of what its scans found, and what people say of that.

    Computed from the ledger. A line is open where it passes the bound that dropped it: steps after that were
    never asked, so it is at most one more event. Exits 1 if the settings differ.
    """
    present = _known(settings, workload)
    tried = _tried(present, bounds, chances)
    with closing(open_store(settings.store, existing=True)) as store:
        lines = gather_comparison(store, present, service, (since, system_clock()), tried)
    shown = [line for line in lines if line.differs or show_all]
    if as_json:
        print_json_lines(map(_json, shown))
    else:
        print_lines([*map(_text, shown), _summary(lines)])
    return 1 if any(line.differs for line in lines) else 0


def _known(settings: Settings, name: str) -> Workload:
    workloads = known_workloads(settings.workloads)
    if name not in workloads:
        raise ConfigError(f"no workload {name[:80]!r}; there are {listed(list(workloads), name)}")
    return workloads[name]


def _tried(
    workload: Workload, bounds: tuple[float, ...], chances: tuple[float, ...]
) -> tuple[Setting, Setting]:
    for name, values in (("--threshold", bounds), ("--chance", chances)):
        if len(values) > 2:
            raise ConfigError(f"{name}: give it once or twice")
    if not bounds and not chances:
        raise ConfigError("give another --threshold or --chance")
    first = setting_of(
        workload,
        bounds[0] if len(bounds) == 2 else None,
        chances[0] if len(chances) == 2 else None,
    )
    second = setting_of(workload, bounds[-1] if bounds else None, chances[-1] if chances else None)
    return first, second


def _text(line: Line) -> str:
    shown = line.shown
    mark = "*" if line.differs else " "
    state = f"  {line.state.verdict} by {line.state.author}" if line.state else ""
    return (
        f"{mark} {shown.id}  {shown.service}  {shown.candidate.metric}  "
        f"{to_iso(shown.candidate.change_time)}  "
        f"{shown.candidate.before:.4g} → {shown.candidate.after:.4g}  "
        f"{_outcome(line.first)} | {_outcome(line.second)}{state}"
    )


def _outcome(outcome: Outcome) -> str:
    return f"{outcome.fate} ({outcome.step})" if outcome.step else outcome.fate


def _summary(lines: Sequence[Line]) -> str:
    gone, come = tally(fewer(lines)), tally(more(lines))
    reported = sum(line.first.fate == "reported" for line in lines)
    return (
        f"{counted(len(lines), 'regression')}, {reported} reported by the first: "
        f"the second reports {gone.lines} fewer "
        f"({gone.right} right, {gone.wrong} wrong), at most {come.lines} more "
        f"({come.right} right, {come.wrong} wrong)"
    )


def _json(line: Line) -> dict[str, Any]:
    shown = line.shown
    return {
        **{"id": shown.id, "service": shown.service, "workload": shown.workload},
        **{"metric_kind": shown.candidate.metric_kind, "metric": shown.candidate.metric},
        **{"change_time": to_iso(shown.candidate.change_time), "scan_end": to_iso(shown.scan_end)},
        **{
            "before": shown.candidate.before,
            "after": shown.candidate.after,
            "p_value": shown.candidate.p_value,
        },
        "first": {"fate": line.first.fate, "step": line.first.step or None},
        "second": {"fate": line.second.fate, "step": line.second.step or None},
        "differs": line.differs,
        "verdict": line.state.verdict if line.state else None,
        "right": line.right,
    }
