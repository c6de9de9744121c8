from __future__ import annotations

import pytest

from pipeline.analysis.dedup.releases import ReleaseConfig, sure_of_one_thing


@pytest.mark.parametrize(
    ("hits", "deployed", "sure"),
    [
        pytest.param(0, 5, False, id="none"),
        pytest.param(1, 1, False, id="a single change"),
        pytest.param(2, 2, False, id="two of two: a month has thousands of small releases"),
        pytest.param(3, 3, True, id="three of three"),
        pytest.param(8, 12, True, id="most of a dozen"),
        pytest.param(3, 200, False, id="three of two hundred"),
        pytest.param(10, 200, True, id="ten of two hundred"),
    ],
)
def test_a_release_is_one_thing_if_many_of_its_changes_regress(hits: int, deployed: int, sure: bool) -> None:
    assert (sure_of_one_thing(hits, deployed) >= 0.99) is sure


def test_more_hits_make_it_surer_and_more_changes_less() -> None:
    assert sure_of_one_thing(4, 40) > sure_of_one_thing(3, 40) > sure_of_one_thing(3, 80)
    assert sure_of_one_thing(3, 0) == sure_of_one_thing(3, 3), "what is no longer known was deployed"
    assert sure_of_one_thing(3, 5, ReleaseConfig(usual=0.5)) < 0.6
