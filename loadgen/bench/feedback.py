"""``smidgen bench feedback``: precision and suspects before and after simulated verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import numpy as np

from loadgen.evaluation.answers import Lesson, answer_fleet, first_by_confirmations, learn
from loadgen.terminal import new_figure, progress
from pipeline.analysis.feedback import Share
from pipeline.commands.tables import print_json
from pipeline.files.outputs import check_outputs
from pipeline.model.errors import ConfigError
from pipeline.settings.workloads import load_workloads

FIRST_SEED = 201
"""Of the fleets; the weights that are shipped were found on seeds from 101 on."""

KEEPS = (1.0, 0.95, 0.9)
"""Shares of the right events that proposed thresholds keep at least."""

COUNTS = (0, 5, 10, 25, 50, 100, 200)
ORGANISATIONS = {
    "": "all evidence speaks",
    "text": "texts say nothing",
    "attribution": "attribution says nothing",
}
"""The weight whose evidence is chance → how the organisation is called."""

_COLORS = {"": "#8a8a8a", "text": "#c0392b", "attribution": "#2c6fad"}


@click.command()
@click.option("--verdicts", type=click.IntRange(min=1), default=200, show_default=True, help="That teach.")
@click.option("--scenario", default="small", show_default=True, help="Fleet that is simulated.")
@click.option("--fleets", type=click.IntRange(min=1), default=24, show_default=True, help="How many.")
@click.option("--workload", default="frontfaas-small", show_default=True, help="Preset or file.")
@click.option("--figure", type=click.Path(path_type=Path), help="Draw what suspects learn: an SVG.")
@click.option("--causes-only", is_flag=True, help="Leave the fleets out: suspects alone, in seconds.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def feedback(
    verdicts: int,
    scenario: str,
    fleets: int,
    workload: str,
    figure: Path | None,
    causes_only: bool,
    as_json: bool,
) -> None:
    """Measure what verdicts teach: the first teach, the events after them are held out.

    Fleets whose truth is known are simulated and backtested, and their truth answers each event. Suspects
    are also measured on drawn organisations: one where all evidence speaks as the shipped weights assume,
    and some where one kind of it says nothing. Thresholds are proposed that keep all right events, and such
    that may lose some.
    """
    if figure:
        check_outputs({"--figure": figure}, [])
    seeds = range(FIRST_SEED, FIRST_SEED + fleets)
    lessons = {} if causes_only else _lessons(verdicts, scenario, seeds, workload)
    curves = {silent: first_by_confirmations(range(1, 11), COUNTS, silent) for silent in ORGANISATIONS}
    if figure:
        _draw(curves, figure)
    if as_json:
        shown = {
            ORGANISATIONS[silent]: {str(count): float(np.mean(shares)) for count, shares in curve.items()}
            for silent, curve in curves.items()
        }
        taught = [{"keep": keep, **_lesson_json(lesson)} for keep, lesson in lessons.items()]
        print_json({"lessons": taught, "first_by_confirmations": shown})
        return
    for line in _lines(lessons, curves):
        click.echo(line)


def _lessons(verdicts: int, scenario: str, seeds: Sequence[int], workload: str) -> dict[float, Lesson]:
    workloads = load_workloads((workload,))
    answered = []
    with progress("fleets", len(seeds)) as advance:
        for seed in seeds:
            answered += answer_fleet(scenario, seed, workloads)
            advance()
    if len(answered) <= verdicts:
        raise ConfigError(f"--seeds: {len(answered)} events are not more than {verdicts} verdicts")
    return {keep: learn(answered, workloads, verdicts, keep) for keep in KEEPS}


def _lines(lessons: Mapping[float, Lesson], curves: dict[str, dict[int, list[float]]]) -> list[str]:
    lines: list[str] = []
    for keep, lesson in lessons.items():
        before, after = lesson.precision
        if not lines:
            named, learnt = lesson.first
            lines += [
                f"{lesson.answers} verdicts taught, {before.of} events held out",
                f"true change first         {_percent(named)} before, {_percent(learnt)} after",
            ]
        bounds = ", ".join(f"{name} {bound:.3g}" for name, bound in lesson.thresholds.items()) or "none"
        lines += [
            f"thresholds that keep {keep:.0%}  {bounds}",
            f"  precision               {_percent(before)} before, {_percent(after)} after",
            f"  right events kept       {_percent(lesson.kept)}",
        ]
    if lines:
        lines.append("")
    lines.append("true change first, after so many confirmed causes (mean of 10 seeds)")
    lines.append(f"{'':<26}" + "".join(f"{count:>7}" for count in COUNTS))
    for silent, curve in curves.items():
        shares = "".join(f"{np.mean(curve[count]) * 100:>6.1f}%" for count in COUNTS)
        lines.append(f"{ORGANISATIONS[silent]:<26}{shares}")
    return lines


def _percent(one: Share) -> str:
    low, high = one.interval
    return f"{one.hits} of {one.of} = {one.share * 100:.1f} % ({low * 100:.1f}–{high * 100:.1f})"


def _lesson_json(lesson: Lesson) -> dict[str, object]:
    def shares(*every: Share) -> list[dict[str, float]]:
        return [{"hits": one.hits, "of": one.of, "share": one.share} for one in every]

    return {
        **{"answers": lesson.answers, "thresholds": dict(lesson.thresholds)},
        **{"precision": shares(*lesson.precision), "kept": shares(lesson.kept)[0]},
        "first": shares(*lesson.first),
    }


def _draw(curves: dict[str, dict[int, list[float]]], path: Path) -> None:
    drawing = new_figure(6.4, 3.4, layout="constrained")
    axes = drawing.subplots(1, 1)
    for silent, curve in curves.items():
        means = np.array([np.mean(curve[count]) for count in COUNTS]) * 100
        spread = np.array([np.std(curve[count]) for count in COUNTS]) * 100
        axes.errorbar(
            COUNTS, means, yerr=spread, color=_COLORS[silent], marker="o", label=ORGANISATIONS[silent]
        )
    axes.set_xlabel("confirmed causes")
    axes.set_ylabel("true change first, %")
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(path, metadata={"Date": None}, facecolor="white")
