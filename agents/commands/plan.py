"""``smidgen agent plan``: the sampling rate that shows a regression of some size (FBDetect Appendix A.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click
import orjson
from rich.table import Table
from rich.text import Text

from agents.commands.options import checked_by
from agents.sampling.rates.policy import GCPU, NOISE, SERIES, RateCase, enough_hz, look_at, threshold_of
from pipeline.analysis.detect.detectable import Look, detectable_size, time_to_detect
from pipeline.commands.options import FiniteRange, settings_options
from pipeline.commands.terminal import table_console
from pipeline.files.values import share_of
from pipeline.model.errors import ConfigError
from pipeline.model.units import format_duration
from pipeline.settings.config import Settings
from pipeline.settings.workloads import Workload, load_workloads

RATES_HZ = (1 / 60, 0.1, 1.0, 10.0, 100.0)
"""Rates from once a minute to the default of profilers, in steps of a factor of about ten."""

_EXAMPLES = """\b
Examples:
  smidgen agent plan --hosts 500 --cpus 8 --threshold 0.005%
  smidgen agent plan --hosts 40 --threshold 0.05% --gcpu 1% --workloads pythonfaas-small
"""


@dataclass(frozen=True, slots=True)
class _Outlook:
    """Detectable sizes at one rate, with the least and the most noise."""

    rate_hz: float
    after_analysis: tuple[float, float]  # detectable gCPU; infinite: none is detectable
    after_extended: tuple[float, float]
    after_s: tuple[float | None, float | None]  # seconds until the threshold is detectable; None: never


@click.command(epilog=_EXAMPLES)
@click.option("--hosts", type=click.IntRange(min=1), required=True, help="Hosts of the service.")
@click.option(
    "--cpus",
    type=FiniteRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="Processors that the service keeps busy on a host, on average: threads that run are sampled.",
)
@click.option(
    "--threshold",
    callback=checked_by(share_of),
    metavar="SHARE",
    help="Rise of a subroutine that is to be seen, of the service's CPU. [default: the workload's]",
)
@click.option(
    "--gcpu",
    default=f"{100 * GCPU:.2g}%",
    show_default=True,
    callback=checked_by(share_of),
    metavar="SHARE",
    help="Of the subroutine before; the default is the median of FBDetect's largest service (§5.1).",
)
@click.option(
    "--series",
    type=click.IntRange(min=1),
    default=SERIES,
    show_default=True,
    help="Subroutines of the service.",
)
@click.option(
    "--noise",
    type=(FiniteRange(min=1), FiniteRange(min=1)),
    default=NOISE,
    show_default=True,
    metavar="LEAST MOST",
    help="Variance of gCPU, times that of sampling; smidgen detectable prints a service's own.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a workload.")
@settings_options("workloads")
def plan(
    settings: Settings,
    hosts: int,
    cpus: float,
    threshold: float | None,
    gcpu: float,
    series: int,
    noise: tuple[float, float],
    as_json: bool,
) -> None:
    """Say which sampling rate lets a service of some size show a regression of some size, and when.

    For each workload that looks for steps or slow rises of gCPU: what is detectable (reported in 90 of 100
    cases, at most one series in 100 scans by chance) at rates from once a minute to 100 Hz, and the rate from
    which the threshold is. All figures are intervals from the least to the most noise. A rate counts for each
    busy processor.
    """
    least, most = sorted(noise)
    workloads = [row for row in load_workloads(settings.workloads) if row.series == "gcpu"]
    if not workloads:
        raise ConfigError("--workloads: none of them looks at gCPU")
    for workload in workloads:
        wanted = threshold or threshold_of(workload, gcpu)
        case = RateCase(hosts * cpus, wanted, gcpu, series, (least, most))
        look = look_at(workload)
        outlooks, enough = list(_outlooks(case, look)), enough_hz(case, look)
        if as_json:
            click.echo(orjson.dumps(_to_json(workload, case, outlooks, enough)).decode())
        else:
            _print(workload, case, outlooks, enough)


def _outlooks(case: RateCase, look: Look) -> Iterator[_Outlook]:
    for rate_hz in RATES_HZ:
        quiet, noisy = case.traffic(rate_hz)
        sizes = [
            (
                detectable_size(case.gcpu, after_s, quiet, look),
                detectable_size(case.gcpu, after_s, noisy, look),
            )
            for after_s in (look.analysis_s, look.longest_s)
        ]
        first = time_to_detect(case.gcpu, case.threshold, quiet, look)
        last = time_to_detect(case.gcpu, case.threshold, noisy, look)
        yield _Outlook(rate_hz, sizes[0], sizes[1], (first, last))


def _to_json(
    workload: Workload, case: RateCase, outlooks: list[_Outlook], enough_hz: tuple[float, float]
) -> dict[str, Any]:
    return {
        "workload": workload.name,
        "threshold": case.threshold,
        "gcpu": case.gcpu,
        "series": case.series,
        "noise": case.noise,
        "processors": case.processors,
        "rate_hz": [_finite(rate) for rate in enough_hz],
        "samples_per_s": [_finite(rate * case.processors) for rate in enough_hz],
        "rates": [
            {
                "rate_hz": outlook.rate_hz,
                "after_analysis": [_finite(size) for size in outlook.after_analysis],
                "after_extended": [_finite(size) for size in outlook.after_extended],
                "threshold_after_s": outlook.after_s,
            }
            for outlook in outlooks
        ],
    }


def _print(
    workload: Workload, case: RateCase, outlooks: list[_Outlook], enough_hz: tuple[float, float]
) -> None:
    console = table_console()
    title = f"{workload.name}, {case.processors:,.6g} busy processors, subroutines of {_percent(case.gcpu)}"
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("rate")
    table.add_column("samples/s", justify="right")
    table.add_column(f"detectable after {format_duration(workload.analysis_s)}", justify="right")
    if workload.extended_s:
        table.add_column(f"and {format_duration(workload.extended_s)} more", justify="right")
    table.add_column(f"{_percent(case.threshold)} after", justify="right")
    for outlook in outlooks:
        table.add_row(
            _rate(outlook.rate_hz),
            _number(outlook.rate_hz * case.processors),
            _sizes(outlook.after_analysis),
            *([_sizes(outlook.after_extended)] if workload.extended_s else []),
            " to ".join(dict.fromkeys("never" if s is None else format_duration(s) for s in outlook.after_s)),
        )
    console.print(table)
    console.print(Text(_advice(case, enough_hz)))
    console.print()


def _advice(case: RateCase, enough_hz: tuple[float, float]) -> str:
    least, most = case.noise
    if math.isinf(enough_hz[1]):
        return f"no rate is enough for {_percent(case.threshold)} with noise of {most:g} times sampling"
    low, high = (f"{rate:.2g} Hz" for rate in enough_hz)
    return (
        f"enough for {_percent(case.threshold)}: {low} a processor if sampling makes all noise ({least:g}), "
        f"{high} if there is {most:g} times as much"
    )


def _rate(rate_hz: float) -> str:
    return f"{rate_hz:g} Hz" if rate_hz >= 0.1 else f"{rate_hz * 60:.3g} a minute"


def _number(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _sizes(sizes: tuple[float, float]) -> str:
    if math.isinf(sizes[0]):
        return "nothing"
    return " to ".join("nothing" if math.isinf(size) else _percent(size) for size in sizes)


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
