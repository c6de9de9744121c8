from __future__ import annotations

import pytest

from pipeline.analysis.statistics.name_vectors import name_vectors

NAMES = ["shop.cart.Cart.total", "shop.cart.Cart.tax", "lib.json.encode", "api.login.Session.open"]


def test_like_names_are_near_and_a_name_equals_itself() -> None:
    found = name_vectors([*NAMES, NAMES[0]], (2, 3), 64)
    cosines = found @ found.T
    assert cosines[0, 4] == pytest.approx(1.0)
    assert cosines[0, 1] > 0.4 > max(cosines[0, 2], cosines[0, 3])


def test_rare_parts_of_names_weigh_more() -> None:
    others = [f"shop.work.part{number}" for number in range(30)]
    found = name_vectors(["shop.work.zqx", "lib.misc.zqx", "shop.work.jvk", *others], (2, 3), 512)
    assert float(found[0] @ found[1]) > float(found[0] @ found[2])


@pytest.mark.parametrize("names", [pytest.param([], id="none"), pytest.param(["", "a"], id="too short")])
def test_names_without_grams_are_nowhere(names: list[str]) -> None:
    assert name_vectors(names, (2, 3), 64).tolist() == [[0.0] * 64] * len(names)
