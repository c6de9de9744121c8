"""What simulated verdicts teach: suspects get better where evidence misleads, and no worse elsewhere."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from loadgen.bench.feedback import COUNTS
from loadgen.evaluation.answers import AnsweredSimulation, first_by_confirmations, learn
from pipeline.analysis.feedback import AnsweredEvent, Confirmation, Reported
from pipeline.cli import smidgen
from pipeline.settings.workloads import load_workloads

WORKLOADS = load_workloads(("frontfaas-small",))


@pytest.mark.parametrize(("silent", "gain"), [("", -0.005), ("text", 0.02), ("attribution", 0.03)])
def test_confirmations_help_where_evidence_says_nothing_and_hurt_nowhere(silent: str, gain: float) -> None:
    found = first_by_confirmations(range(3), (0, 10, 200), silent, held=600)
    before, few, many = (np.mean(found[count]) for count in (0, 10, 200))
    assert many - before >= gain
    assert abs(few - before) <= 0.02


def answered(number: int, right: bool, delta: float) -> AnsweredSimulation:
    reported = Reported(
        f"e{number}", "fleet", "frontfaas-small", "subroutine", "f", 0.0, 1.0, 0.1, 0.1 + delta
    )
    confirmation = Confirmation({"c": {"text": 2.0}}, "c") if right else None
    return AnsweredSimulation(AnsweredEvent(reported, right), confirmation)


def test_a_threshold_that_was_taught_is_held_against_later_events() -> None:
    taught = [answered(n, True, 0.02 + 0.001 * n) for n in range(20)]
    taught += [answered(n, False, 0.001) for n in range(20, 25)]
    held = [answered(1, True, 0.03), answered(2, True, 0.005), answered(3, False, 0.002)]
    lesson = learn([*taught, *held], WORKLOADS, 25)
    before, after = lesson.precision
    assert lesson.thresholds == {"frontfaas-small": pytest.approx(0.018)}
    assert ((before.hits, before.of), (after.hits, after.of)) == ((2, 3), (1, 1))
    assert (lesson.kept.hits, lesson.kept.of) == (1, 2)
    assert [share.hits for share in lesson.first] == [2, 2]


def test_what_it_costs_to_keep_fewer_right_events_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten right events the smallest is as small as the wrong ones, so only 90 % of them are parted."""
    fleet = [answered(0, True, 0.001), *(answered(n, True, 0.02) for n in range(1, 10))]
    fleet += [answered(n, False, 0.002) for n in range(10, 13)]
    monkeypatch.setattr("loadgen.bench.feedback.answer_fleet", lambda *_: fleet)
    monkeypatch.setattr(
        "loadgen.bench.feedback.first_by_confirmations", lambda *_: dict.fromkeys(COUNTS, [0.5])
    )
    arguments = ["bench", "feedback", "--fleets", "2", "--verdicts", "13"]
    shown = CliRunner().invoke(smidgen, arguments)
    lines = [" ".join(line.split()) for line in shown.stdout.splitlines()]
    assert lines[0] == "13 verdicts taught, 13 events held out"
    assert lines[2] == "thresholds that keep 100% none"
    assert lines[8] == "thresholds that keep 90% frontfaas-small 0.018"
    assert lines[9].startswith("precision 10 of 13 = 76.9 %")
    assert "before, 9 of 9 = 100.0 %" in lines[9]
    assert lines[10].startswith("right events kept 9 of 10 = 90.0 %")
    found = json.loads(CliRunner().invoke(smidgen, [*arguments, "--json"]).stdout)
    assert [one["keep"] for one in found["lessons"]] == [1.0, 0.95, 0.9]
