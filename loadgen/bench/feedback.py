"""``smidgen bench feedback``: precision and suspects before and after simulated verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from loadgen.evaluation.answers import Lesson, answer_fleet, first_by_confirmations, learn
from loadgen.harness import Advance, Experiment, bench, lines
from loadgen.terminal import new_figure
from pipeline.analysis.feedback import Share
from pipeline.commands.request import option
from pipeline.files.outputs import check_outputs
from pipeline.model.errors import ConfigError
from pipeline.settings.workloads import load_workloads

FIRST_SEED = 201
"""Seeds of the fleets; the shipped weights were learnt on seeds from 101 on."""

KEEPS = (1.0, 0.95, 0.9)
"""Shares of the right events that proposed thresholds keep at least."""

COUNTS = (0, 5, 10, 25, 50, 100, 200)
ORGANISATIONS = {
    "": "all evidence speaks",
    "text": "texts say nothing",
    "attribution": "attribution says nothing",
}
"""Weight whose evidence is random → name of the organisation."""

_COLORS = {"": "#8a8a8a", "text": "#c0392b", "attribution": "#2c6fad"}


@dataclass(frozen=True, slots=True)
class _FeedbackRequest:
    verdicts: int = option(200, least=1, help="Number of verdicts that teach.")
    scenario: str = option("small", help="Scenario of the fleet.")
    fleets: int = option(24, least=1, help="Number of fleets.")
    workload: str = option("frontfaas-small", help="Preset or file of the scans.")
    figure: Path | None = option(help="SVG to draw, of what suspects learn.")
    causes_only: bool = option(help="Measure suspects alone, without fleets, in seconds.")


@dataclass(frozen=True, slots=True)
class Feedback:
    """What verdicts teach: by the share of right events that are kept, and by confirmations."""

    lessons: Mapping[float, Lesson]
    curves: Mapping[str, Mapping[int, Sequence[float]]]

    def to_json(self) -> dict[str, object]:
        """Return it as a JSON object."""
        shown = {
            ORGANISATIONS[silent]: {str(count): float(np.mean(shares)) for count, shares in curve.items()}
            for silent, curve in self.curves.items()
        }
        taught = [{"keep": keep, **_lesson_json(lesson)} for keep, lesson in self.lessons.items()]
        return {"lessons": taught, "first_by_confirmations": shown}


@bench(json="JSON")
def feedback(request: _FeedbackRequest) -> Experiment[Feedback]:
    """Measure what verdicts teach: the first teach, the events after them are held out.

    Fleets whose truth is known are simulated and backtested, and their truth answers each event. Suspects
    are also measured on drawn organisations: one where all evidence speaks as the shipped weights assume,
    and some where one kind of it says nothing. Thresholds are proposed that keep all right events, and such
    that may lose some.
    """
    if request.figure:
        check_outputs({"--figure": request.figure}, [])

    def rows(advance: Advance) -> Iterator[Feedback]:
        lessons = {} if request.causes_only else _lessons(request, advance)
        curves = {silent: first_by_confirmations(range(1, 11), COUNTS, silent) for silent in ORGANISATIONS}
        if request.figure:
            _draw(curves, request.figure)
        yield Feedback(lessons, curves)

    return Experiment(rows, 0 if request.causes_only else request.fleets, lines(_text))


def _lessons(request: _FeedbackRequest, advance: Advance) -> dict[float, Lesson]:
    workloads = load_workloads((request.workload,))
    answered = []
    for seed in range(FIRST_SEED, FIRST_SEED + request.fleets):
        answered += answer_fleet(request.scenario, seed, workloads)
        advance()
    if len(answered) <= request.verdicts:
        raise ConfigError(f"--seeds: {len(answered)} events are not more than {request.verdicts} verdicts")
    return {keep: learn(answered, workloads, request.verdicts, keep) for keep in KEEPS}


def _text(result: Feedback) -> str:
    text: list[str] = []
    for keep, lesson in result.lessons.items():
        before, after = lesson.precision
        if not text:
            named, learnt = lesson.first
            text += [
                f"{lesson.answers} verdicts taught, {before.of} events held out",
                f"true change first         {_percent(named)} before, {_percent(learnt)} after",
            ]
        bounds = ", ".join(f"{name} {bound:.3g}" for name, bound in lesson.thresholds.items()) or "none"
        text += [
            f"thresholds that keep {keep:.0%}  {bounds}",
            f"  precision               {_percent(before)} before, {_percent(after)} after",
            f"  right events kept       {_percent(lesson.kept)}",
        ]
    if text:
        text.append("")
    text.append("true change first, after so many confirmed causes (mean of 10 seeds)")
    text.append(f"{'':<26}" + "".join(f"{count:>7}" for count in COUNTS))
    for silent, curve in result.curves.items():
        shares = "".join(f"{np.mean(curve[count]) * 100:>6.1f}%" for count in COUNTS)
        text.append(f"{ORGANISATIONS[silent]:<26}{shares}")
    return "\n".join(text)


def _percent(rate: Share) -> str:
    low, high = rate.interval
    return f"{rate.hits} of {rate.of} = {rate.share * 100:.1f} % ({low * 100:.1f}–{high * 100:.1f})"


def _lesson_json(lesson: Lesson) -> dict[str, object]:
    def shares(*every: Share) -> list[dict[str, float]]:
        return [{"hits": rate.hits, "of": rate.of, "share": rate.share} for rate in every]

    return {
        **{"answers": lesson.answers, "thresholds": dict(lesson.thresholds)},
        **{"precision": shares(*lesson.precision), "kept": shares(lesson.kept)[0]},
        "first": shares(*lesson.first),
    }


def _draw(curves: Mapping[str, Mapping[int, Sequence[float]]], path: Path) -> None:
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
