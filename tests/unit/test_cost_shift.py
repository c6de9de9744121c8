from __future__ import annotations

import numpy as np
import pytest

from pipeline.filters.cost_shift import (
    caller_domain,
    class_domain,
    judge_cost_shift,
    own_shares,
    rest_shares,
)
from pipeline.gcpu.stacks import Series
from pipeline.model import StackMatrix
from tests.builders import build_stacks

SAMPLES = 20_000


def scaled(rows: dict[str, tuple[float, float]]) -> StackMatrix:
    """Stacks by their percentages before and after; the rest is idle."""
    before, after = (sum(pair[i] for pair in rows.values()) for i in (0, 1))
    full = {**rows, "main->idle": (100 - before, 100 - after)}
    return build_stacks({stack: (b * SAMPLES / 100, a * SAMPLES / 100) for stack, (b, a) in full.items()})


def shifted(matrix: StackMatrix, name: str, domain: str) -> bool:
    find = caller_domain if domain == "callers" else class_domain
    found = find(matrix, ("subroutine", name))
    assert found is not None
    series: Series = ("subroutine", name)
    return not judge_cost_shift(own_shares(matrix, series), rest_shares(matrix, series, found), found).passed


@pytest.mark.parametrize(
    ("rows", "name", "domain", "expected"),
    [
        pytest.param(
            {"main->page": (20, 12), "main->page->page_rows": (0, 8)},
            "page_rows",
            "callers",
            True,
            id="extract",
        ),
        pytest.param(
            {"main->page->old": (8, 0), "main->page->new": (0, 8)}, "new", "callers", True, id="rename"
        ),
        pytest.param(
            {"main->page->a": (10, 5), "main->page->b": (5, 10)},
            "b",
            "callers",
            True,
            id="work moved to a sibling",
        ),
        pytest.param(
            {"main->page->Cart.x": (6, 11), "main->other->Cart.y": (9, 4)},
            "Cart.x",
            "class",
            True,
            id="work moved within a class, across callers",
        ),
        pytest.param(
            {"main->page->a": (10, 17), "main->page": (5, 5)}, "a", "callers", False, id="a true regression"
        ),
        pytest.param(
            {"main->page->new": (0, 6), "main->page": (15, 15)},
            "new",
            "callers",
            False,
            id="a new costly helper",
        ),
        pytest.param(
            {"main->page->a": (10, 17), "main->page->b": (5, 4)},
            "a",
            "callers",
            False,
            id="a true regression beside a small improvement",
        ),
        pytest.param(
            {"main->new.page->new.page.a": (0, 7)}, "new.page.a", "callers", False, id="the domain is new too"
        ),
    ],
)
def test_cost_shift(rows: dict[str, tuple[float, float]], name: str, domain: str, expected: bool) -> None:
    assert shifted(scaled(rows), name, domain) is expected


def test_a_domain_too_large_for_a_tiny_regression_is_not_judged() -> None:
    # 0.05 % of the samples, in a domain that holds half of them: its noise hides the answer.
    matrix = scaled({"main->page": (50, 50), "main->page->tiny": (0.0, 0.05)})
    assert not shifted(matrix, "tiny", "callers")


def test_figure_1b_cost_moves_between_two_subroutines() -> None:
    # FBDetect Figure 1(b): one subroutine's cost rises because another's, of the same caller, falls.
    rows: dict[str, tuple[float, float]] = {
        "main->c->a": (1.0, 0.0),
        "main->c->b": (1.0, 2.0),
        "main->c": (1, 1),
    }
    assert shifted(scaled(rows), "b", "callers")


def test_callers_pass_over_annotations_and_recursion() -> None:
    matrix = build_stacks({"main->endpoint=/x->h->h": (1, 1), "k->h": (1, 1)})
    domain = caller_domain(matrix, ("subroutine", "h"))
    assert domain is not None
    assert domain.name == "callers: k, main"
    assert domain.holds.tolist() == [True, True]


def test_what_has_no_caller_or_no_class_has_no_domain() -> None:
    matrix = build_stacks({"main": (1, 1)})
    assert caller_domain(matrix, ("subroutine", "main")) is None
    assert class_domain(matrix, ("subroutine", "main")) is None
    assert class_domain(matrix, ("endpoint", "/a.b")) is None


def test_without_samples_on_one_side_nothing_is_judged() -> None:
    matrix = build_stacks({"m->a": (0, 5), "m->b": (0, 5)})
    assert not shifted(matrix, "a", "callers")


@pytest.mark.parametrize(("samples", "silenced"), [(400, 0.0), (2000, 0.75), (8000, 0.99)])
def test_over_many_draws_shifts_are_silenced_and_regressions_kept(samples: int, silenced: float) -> None:
    # A piece of 4 % is extracted from a parent of 12 %, or appears beside it as new work.
    rng = np.random.default_rng(11)
    stacks = (("main", "page"), ("main", "page", "piece"), ("main", "other"))
    dropped = {"shift": 0, "regression": 0}
    draws = 600
    for kind, after in {"shift": [0.08, 0.04, 0.88], "regression": [0.12, 0.04, 0.84]}.items():
        share = np.array(after)
        for _ in range(draws):
            before = rng.multinomial(3 * samples, [0.12, 0.0, 0.88]).astype(np.float64)
            later = rng.multinomial(samples, share).astype(np.float64)
            matrix = StackMatrix(stacks, before, later, before.sum(), later.sum())
            dropped[kind] += shifted(matrix, "piece", "callers")
    assert dropped["shift"] / draws >= silenced
    assert dropped["regression"] / draws <= 0.015
