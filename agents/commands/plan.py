"""``smidgen agent plan``: the sampling rate that shows a regression of some size (FBDetect Appendix A.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from agents.sampling.rates.policy import GCPU, NOISE, SERIES, RateCase, enough_hz, look_at, threshold_of
from pipeline.analysis.detect.detectable import Look, detectable_size, time_to_detect
from pipeline.commands.options import settings_options
from pipeline.commands.request import FiniteRange, json_option, option, takes
from pipeline.commands.tables import Column, print_json, print_table
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
@takes
def plan(
    hosts: int = option(least=1, help="Hosts of the service."),
    cpus: float = option(1.0, above=0, help="Processors that the service keeps busy on a host, on average."),
    threshold: float | None = option(
        parse=share_of,
        metavar="SHARE",
        help="Smallest rise of a subroutine to be seen, a share of the service's CPU. [default: the "
        "workload's]",
    ),
    gcpu: float = option(
        f"{100 * GCPU:.2g}%",
        parse=share_of,
        metavar="SHARE",
        help="gCPU of the subroutine before; the default is the median of FBDetect's largest service (§5.1).",
    ),
    series: int = option(SERIES, least=1, help="Subroutines of the service."),
    noise: tuple[float, float] = option(
        NOISE,
        kind=(FiniteRange(min=1), FiniteRange(min=1)),
        metavar="LEAST MOST",
        help="Variance of gCPU as a multiple of that of sampling; smidgen detectable prints a service's own.",
    ),
    as_json: bool = json_option("a workload"),
    settings: Settings = settings_options("workloads"),
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
            print_json(_to_json(workload, case, outlooks, enough))
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
    columns: list[Column[_Outlook]] = [
        Column("rate", lambda row: _rate(row.rate_hz)),
        Column("samples/s", lambda row: _number(row.rate_hz * case.processors), str),
        Column(
            f"detectable after {format_duration(workload.analysis_s)}",
            lambda row: _sizes(row.after_analysis),
            str,
        ),
    ]
    if workload.extended_s:
        more = f"and {format_duration(workload.extended_s)} more"
        columns.append(Column(more, lambda row: _sizes(row.after_extended), str))
    columns.append(Column(f"{_percent(case.threshold)} after", lambda row: _times(row.after_s), str))
    title = f"{workload.name}, {case.processors:,.6g} busy processors, subroutines of {_percent(case.gcpu)}"
    print_table(columns, outlooks, title=title)
    click.echo(f"{_advice(case, enough_hz)}\n")


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


def _times(seconds: tuple[float | None, float | None]) -> str:
    return " to ".join(dict.fromkeys("never" if s is None else format_duration(s) for s in seconds))


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
