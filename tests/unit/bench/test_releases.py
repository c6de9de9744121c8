"""``smidgen bench release``: pairs of releases drawn from stacks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from loadgen.bench.releases import PairSetting, PairTask, draw_pair, drawn_tree, read_tree, try_pair
from pipeline.cli import run
from pipeline.model import SeriesKey

STACKS = "main;a;b 60\nmain;a 25\nmain;c 15\n"


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "shop.collapsed"
    path.write_text(STACKS)
    return path


def test_pairs_have_the_shares_of_a_profile_and_what_rose(profile: Path) -> None:
    tree = read_tree(profile)
    setting = PairSetting(hosts=(2, 2), blocks=3, samples=100_000, spread=0.0, regions=1)
    samples = draw_pair(tree, setting, rise=0.1, subroutine="c", seed=1)
    assert samples.series == tuple(SeriesKey("subroutine", name) for name in ("a", "b", "c", "main"))
    new = samples.of("new")
    c = np.asarray(samples.counts.todense())[2]
    before, after = c[~new].sum() / samples.totals[~new].sum(), c[new].sum() / samples.totals[new].sum()
    assert after == pytest.approx((before + 0.1) / 1.1, abs=0.01)
    assert before == pytest.approx(0.15, abs=0.05)  # regions and hours differ
    again = draw_pair(tree, setting, rise=0.1, subroutine="c", seed=1)
    assert (again.counts != samples.counts).nnz == 0


def test_a_pair_is_compared_once_and_watched(profile: Path) -> None:
    risen = try_pair(PairTask("hosts that are equal", 1, 0.05, "c", 0.005, profile))
    assert (risen.once, risen.watched, risen.found, risen.besides) == ("slower", "slower", True, False)
    assert 1 <= risen.hours <= 2
    same = try_pair(PairTask("hosts that are equal", 1, 0.0, "", 0.005, profile))
    assert (same.once, same.found, same.besides) == ("steady", False, False)


def test_a_drawn_tree_has_endpoints() -> None:
    tree = drawn_tree(1)
    assert {key.kind for key in tree.series} == {"subroutine", "endpoint"}
    assert tree.weights.sum() == pytest.approx(1.0)


@pytest.mark.slow
def test_the_command_prints_shares_of_pairs(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["bench", "release", "--pairs", "1", "--rise", "0.05", "--profile", str(profile)]
    setting = ["--setting", "hosts that are equal"]
    assert run([*arguments, *setting, "--subroutine", "c", "--json"]) == 0
    (found,) = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (found["slower"], found["found"], found["others slower"]) == (1.0, 1.0, 0.0)
    assert run([*arguments, *setting, "--subroutine", "x"]) == 2
    assert "--subroutine x: not in" in capsys.readouterr().err
