"""Names in one line: the nearest first, and never more than fit."""

from __future__ import annotations

import pytest

from pipeline.files.listing import listed


@pytest.mark.parametrize(
    ("names", "wanted", "line"),
    [
        pytest.param([], "x", "none", id="none"),
        pytest.param(["a", "b"], "", "a, b", id="all"),
        pytest.param(["a", "shop"], "shopp", "shop, a", id="the nearest first"),
        pytest.param([*"abcdefghij"], "", "a, b, c, d, e, f, g, h, i, j", id="two more than fit"),
        pytest.param([*"abcdefghijk"], "", "a, b, c, d, e, f, g, h and 3 more", id="many"),
        pytest.param(
            [*"abcdefghijk", "shop"], "shops", "shop, a, b, c, d, e, f, g and 4 more", id="many, near"
        ),
        pytest.param(["x" * 500], "", "x" * 100, id="a long one"),
    ],
)
def test_names(names: list[str], wanted: str, line: str) -> None:
    assert listed(names, wanted) == line
