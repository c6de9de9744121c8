"""What a fault run lacks to prove anything, as a table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadgen.bench.faults.hits import ENOUGH_DRAWS, Ground, Hit, StrikePlan, lacking

KILL = Hit("kill", "detect", True, "exit code -9", "detect", 7, under_way=3)
FREEZE = replace(KILL, kind="freeze", target="filter", stage="filter", under_way=0)
MISSED = replace(KILL, struck=False, pid=0, proof="exit code None")
GROUND = Ground(services=3, events=2, parted=4, parts_seen=4)
BOTH = StrikePlan(2, ("detect", "filter"), ("kill", "freeze"))
MANY = [KILL] * ENOUGH_DRAWS


@pytest.mark.parametrize(
    ("plan", "hits", "ground", "lines"),
    [
        pytest.param(BOTH, [KILL, FREEZE], GROUND, [], id="nothing"),
        pytest.param(
            StrikePlan(1), [KILL], replace(GROUND, parts_seen=9), [], id="repeated parts are no lack"
        ),
        pytest.param(StrikePlan(1), [], GROUND, ["0 of 1 strikes struck"], id="no strike"),
        pytest.param(
            StrikePlan(2),
            [KILL, MISSED],
            GROUND,
            ["struck nothing: kill of detect: exit code None", "1 of 2 strikes struck"],
            id="a strike that met nothing",
        ),
        pytest.param(
            StrikePlan(1), [FREEZE], GROUND, ["nothing was under way at any strike"], id="an idle pipeline"
        ),
        pytest.param(
            replace(BOTH, kinds=()), [KILL, KILL], GROUND, ["filter was never struck"], id="a stage spared"
        ),
        pytest.param(
            StrikePlan(1, ("detect", "filter")),
            [KILL],
            GROUND,
            [],
            id="fewer strikes than stages, as planned",
        ),
        pytest.param(StrikePlan(20, (), BOTH.kinds), MANY, GROUND, ["no freeze"], id="a kind never drawn"),
        pytest.param(StrikePlan(2, (), BOTH.kinds), MANY[:2], GROUND, [], id="too few draws for each kind"),
        pytest.param(
            StrikePlan(1), [KILL], replace(GROUND, services=1), ["1 services, not 3"], id="one service alone"
        ),
        pytest.param(
            StrikePlan(1),
            [KILL],
            replace(GROUND, events=0),
            ["an undisturbed run reports no event"],
            id="a truth without events",
        ),
        pytest.param(
            StrikePlan(1), [KILL], Ground(3, 2, 0, 0), ["the load has no scan in parts"], id="no scan is cut"
        ),
        pytest.param(
            StrikePlan(1),
            [KILL],
            replace(GROUND, parts_seen=1),
            ["1 of 4 scans came in parts"],
            id="scans that should be cut are not",
        ),
    ],
)
def test_a_run_lacks(plan: StrikePlan, hits: list[Hit], ground: Ground, lines: list[str]) -> None:
    assert lacking(plan, hits, ground) == lines
