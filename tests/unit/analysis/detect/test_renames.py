"""Renames: which names that ended belong to which that began."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from pipeline.analysis.detect.exchanged_names import find_exchanges
from pipeline.analysis.detect.renames import find_renames
from pipeline.analysis.detect.search import SearchConfig, find_change_points
from pipeline.analysis.detect.short_term import WindowIndexes
from pipeline.model import Rename, SeriesMatrix
from pipeline.model.units import HOUR_S

HOURS = 240
TOTAL = 10_000.0

Life = tuple[int, int, float]  # from hour, to hour, gCPU

STABLE: Mapping[str, Life] = {f"lib.Stable{i}.run": (0, HOURS, 0.05 / (i + 1)) for i in range(100)}


def fleet(lives: Mapping[str, Life], rises: Mapping[str, tuple[int, float]] | None = None) -> SeriesMatrix:
    """Return hourly counts of a hundred stable series and others; some have another gCPU from an hour on."""
    rng = np.random.default_rng(1)
    hours = np.arange(HOURS)
    every = {**STABLE, **lives}
    rows = []
    for name, (start, end, share) in every.items():
        at, other = (rises or {}).get(name, (HOURS, share))
        rows.append(np.where(hours < at, share, other) * ((hours >= start) & (hours < end)))
    samples = rng.poisson(np.array(rows) * TOTAL).astype(np.float64)
    kinds = tuple("subroutine" for _ in every)
    return SeriesMatrix(0.0, HOUR_S, kinds, tuple(every), samples, np.full(HOURS, TOTAL))  # type: ignore[arg-type]


def renamed(names: Mapping[str, str], at: int = 120, share: float = 0.002) -> dict[str, Life]:
    return dict.fromkeys(names, (0, at, share)) | dict.fromkeys(names.values(), (at, HOURS, share))


MOVED = {f"shop.cart.Part{i}.add{i % 3}": f"org.shop.cart.Part{i}.add{i % 3}" for i in range(20)}
"""Every name gets a prefix."""

CROSSED = {f"shop.a{i}.Cart.add": f"shop.b{(i + 1) % 20}.Cart.add" for i in range(20)}
"""What the names have in common says nothing of which is which."""


@pytest.mark.parametrize(
    ("lives", "became"),
    [
        pytest.param({}, {}, id="nothing happened"),
        pytest.param(renamed(MOVED), MOVED, id="a prefix"),
        pytest.param(
            renamed({old: old.replace("cart.", "cart.rt311.") for old in MOVED}),
            {old: old.replace("cart.", "cart.rt311.") for old in MOVED},
            id="a runtime that spells names in another way",
        ),
        pytest.param(
            renamed({f"f{i}": f"shop.Module{i}.f{i}" for i in range(20)}),
            {f"f{i}": f"shop.Module{i}.f{i}" for i in range(20)},
            id="names that become qualified",
        ),
        pytest.param(
            {
                name: (start + (start > 0 and row % 2), end + (end < HOURS and row % 3 == 0), 0.02)
                for row, (name, (start, end, _)) in enumerate(renamed(MOVED).items())
            },
            MOVED,
            id="exchanged within a window: some begin a window later, and some end so",
        ),
        pytest.param(renamed(CROSSED), {}, id="any could be any"),
        pytest.param(
            renamed({f"shop.a{i}.Cart.get": f"shop.b{i}.Cart.put" for i in range(20)}), {}, id="other methods"
        ),
        pytest.param(renamed(dict([*MOVED.items()][:5])), {}, id="few: stacks show them"),
        pytest.param(
            {
                name: (start, end, 0.002 if end == HOURS else 0.02)
                for name, (start, end, _) in renamed(MOVED).items()
            },
            {},
            id="a tenth of the cost: no exchange",
        ),
        pytest.param(
            {**renamed(MOVED), "org.shop.cart.Part3.add0": (120, HOURS, 0.008)},
            MOVED,
            id="one that costs four times as much from its rename on",
        ),
        pytest.param(
            {**renamed(MOVED), "shop.cart.Part3.add0": (0, 60, 0.002)},
            {old: new for old, new in MOVED.items() if old != "shop.cart.Part3.add0"},
            id="one that ended days before",
        ),
        pytest.param(
            {**renamed(MOVED), "org.shop.cart.Part3.add0": (180, HOURS, 0.002)},
            {old: new for old, new in MOVED.items() if old != "shop.cart.Part3.add0"},
            id="one that began days later",
        ),
        pytest.param(
            {**renamed(MOVED), "shop.org.cart.Part3.add0": (0, HOURS, 0.002)},
            {old: new for old, new in MOVED.items() if old != "shop.cart.Part3.add0"},
            id="one that is as similar to a name that lives on",
        ),
        pytest.param(
            {
                **dict.fromkeys(MOVED, (0, 80, 0.002)),
                **dict.fromkeys(MOVED.values(), (80, 160, 0.002)),
                **{f"last.{new}": (160, HOURS, 0.002) for new in MOVED.values()},
            },
            {name: f"last.{new}" for old, new in MOVED.items() for name in (old, new)},
            id="twice",
        ),
    ],
)
def test_find_renames(lives: Mapping[str, Life], became: Mapping[str, str]) -> None:
    matrix = fleet(lives)
    assert find_renames(matrix, find_exchanges(matrix)) == became


WINDOWS = WindowIndexes(analysis=200, extended=224, end=HOURS, history=0)
REGRESSED = "org.shop.cart.Part3.add0"


@pytest.mark.parametrize(
    ("at", "rise", "renames", "found"),
    [
        pytest.param(205, 205, True, True, id="in the release that renamed it"),
        pytest.param(190, 205, True, True, id="hours after"),
        pytest.param(215, 205, True, True, id="hours before"),
        pytest.param(190, 205, False, False, id="without the history of its former name"),
        pytest.param(205, HOURS, True, False, id="no rise"),
    ],
)
def test_a_regression_near_its_rename(at: int, rise: int, renames: bool, found: bool) -> None:
    former = "shop.cart.Part3.add0"
    rises = {former: (rise, 0.006), REGRESSED: (rise, 0.006)}
    config = SearchConfig(("short_term",), absolute=0.0005, renames=renames)
    search = find_change_points(fleet(renamed(MOVED, at), rises), WINDOWS, config)
    own = [candidate for candidate in search.candidates if "Part" in candidate.metric]
    assert [candidate.metric for candidate in own] == ([REGRESSED] if found else [])
    assert (Rename(former, REGRESSED) in search.renames) == renames
    for candidate in own:
        assert candidate.before == pytest.approx(0.002, rel=0.1)
        assert candidate.change_time == rise * HOUR_S
        assert [(d.step, d.subjects) for d in candidate.passed] == [("renames", (former,))]


def test_what_began_in_an_exchange_without_a_former_name_has_no_history() -> None:
    lives = renamed(MOVED, 205) | {f"g{i}_old": (0, 205, 0.002) for i in range(20)}
    lives |= {f"h{i}_new": (205, HOURS, 0.002) for i in range(20)}
    config = SearchConfig(("short_term",), absolute=0.0005)
    search = find_change_points(fleet(lives), WINDOWS, config)
    assert not [candidate for candidate in search.candidates if not candidate.metric.startswith("lib")]
    assert {dropped.decision.code for dropped in search.dropped} == {"exchanged"}


def test_names_that_live_on_show_that_similarity_is_chance() -> None:
    """As many new names are like others that live on as are like those that ended: versions of old code."""
    lives: dict[str, Life] = renamed(MOVED)
    lives |= {f"shop.tax.Part{i}.add{i % 3}": (0, HOURS, 0.001) for i in range(20)}
    lives |= {f"org.shop.tax.Part{i}.add{i % 3}": (120, HOURS, 0.0001) for i in range(20)}
    matrix = fleet(lives)
    assert find_renames(matrix, find_exchanges(matrix)) == {}


def test_many_names_of_one_method_are_compared_class_by_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.analysis.detect.renames._LARGEST", 40)
    matrix = fleet(renamed(MOVED))
    assert find_renames(matrix, find_exchanges(matrix)) == MOVED
