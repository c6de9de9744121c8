"""The comparison with other detectors: its measures by hand, its zoo, and what happens without peers."""

from __future__ import annotations

import numpy as np
import pytest

from loadgen.bench import peers
from loadgen.bench.peers import PEERS, Peer, covering, f1_score, measure, measure_peers
from loadgen.bench.zoo import FAMILIES, draw

F1 = {
    "nothing to find, nothing found": ((), [], 1.0),
    "one false alarm": ((), [50], 2 / 3),
    "one missed": ((50,), [], 2 / 3),
    "at the margin": ((50,), [55], 1.0),
    "beyond the margin": ((50,), [56], 1 / 2),
    "two found for one": ((50,), [49, 52], 4 / 5),
    "one found for two": ((50, 54), [52], 4 / 5),
}


@pytest.mark.parametrize(("truth", "found", "wanted"), F1.values(), ids=F1.keys())
def test_f1(truth: tuple[int, ...], found: list[int], wanted: float) -> None:
    assert f1_score(truth, found) == pytest.approx(wanted)


COVERING = {
    "the same": ((50,), [50], 1.0),
    "one segment for two": ((25,), [], 0.25 * 0.25 + 0.75 * 0.75),
    "two segments for one": ((), [60], 0.6),
    "ten points late": ((50,), [60], 0.5 * 50 / 60 + 0.5 * 40 / 50),
}


@pytest.mark.parametrize(("truth", "found", "wanted"), COVERING.values(), ids=COVERING.keys())
def test_covering(truth: tuple[int, ...], found: list[int], wanted: float) -> None:
    assert covering(truth, found, 100) == pytest.approx(wanted)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("points", [16, 41, 400])
def test_a_series_of_the_zoo_has_changes_inside_it_and_is_drawn_the_same(family: str, points: int) -> None:
    one, again = draw(family, points, 3), draw(family, points, 3)
    assert one.values.shape == (points,)
    assert np.isfinite(one.values).all()
    np.testing.assert_array_equal(one.values, again.values)
    assert one.changes == again.changes
    bounds = np.array([0, *one.changes, points])
    assert np.diff(bounds).min() >= min(points, max(4, points // 12))
    assert not np.array_equal(one.values, draw(family, points, 4).values)


def test_steps_of_the_zoo_lie_at_its_changes() -> None:
    one = draw("constant runs", 200, 1)
    assert tuple(np.flatnonzero(np.diff(one.values)) + 1) == one.changes


def test_a_detector_that_finds_nothing_alarms_never() -> None:
    found = measure(
        "nothing", lambda values: [], families=("white noise", "steps"), lengths=(40,), seeds=2, patience_s=0
    )
    assert found.figures["% false alarms"] == 0
    assert 50 < found.figures["% F1"] < 100
    assert found.figures["series/s"] > 0
    assert found.setup["series"] == 4


def test_a_peer_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = Peer("Somebody", "no_such_module_here", "no-such-package", lambda module: lambda values: [])
    monkeypatch.setattr(peers, "PEERS", (absent,))
    rounds: list[int] = []
    assert measure_peers(lambda: rounds.append(1)) == []
    assert len(rounds) == 1
    said = capsys.readouterr()
    assert "Somebody is left out" in said.err
    assert "pip install no-such-package" in said.err
    assert not said.out


@pytest.mark.parametrize("peer", PEERS[1:], ids=lambda peer: peer.name)
def test_a_peer_that_is_installed_finds_a_plain_step(peer: Peer) -> None:
    detect = peer.make(pytest.importorskip(peer.module))
    values = np.where(np.arange(80) < 40, 0.0, 10.0) + np.random.default_rng(1).standard_normal(80)
    assert list(detect(values)) == [40]
