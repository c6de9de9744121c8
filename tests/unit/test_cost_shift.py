from __future__ import annotations

import numpy as np
import pytest

from pipeline.filters.cost_shift import (
    Domain,
    Shares,
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
    assert domain.labels == {"k", "main"}


def test_a_class_is_told_by_its_dotted_prefix() -> None:
    matrix = build_stacks({"main->shop.Cart.add->shop.Cart.sum": (1, 1), "main->shop.Cartridge.sum": (1, 1)})
    domain = class_domain(matrix, ("subroutine", "shop.Cart.sum"))
    assert domain is not None
    assert domain.labels == {"shop.Cart.add", "shop.Cart.sum"}


def test_the_rest_of_a_domain_is_what_does_not_hold_the_series() -> None:
    matrix = build_stacks({"main->page": (30, 20), "main->page->piece": (10, 40), "main->other": (60, 40)})
    domain = Domain("pages", frozenset({"page"}))
    assert rest_shares(matrix, ("subroutine", "piece"), domain) == Shares(0.3, 0.2, 100.0, 100.0)
    assert own_shares(matrix, ("subroutine", "piece")) == Shares(0.1, 0.4, 100.0, 100.0)


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


DOMAIN = Domain("pages", frozenset({"page"}))
MANY = 1e6


def judged(own: tuple[float, float], rest: tuple[float, float], earlier: list[tuple[float, float]]) -> bool:
    """Return whether a candidate passes; each pair is a share before and after, of a million samples."""
    verdict = judge_cost_shift(
        Shares(*own, MANY, MANY),
        Shares(*rest, MANY, MANY),
        DOMAIN,
        earlier=[Shares(*shares, MANY, MANY) for shares in earlier],
    )
    return verdict.passed


STEADY = [
    (0.120, 0.1203),
    (0.120, 0.1198),
    (0.121, 0.1209),
    (0.119, 0.1190),
    (0.120, 0.1202),
    (0.120, 0.1197),
]
FALLING = [(before, after - 0.03) for before, after in STEADY]
RESTLESS = [(0.12, 0.17), (0.12, 0.06), (0.10, 0.14), (0.12, 0.09), (0.15, 0.10), (0.09, 0.12)]


@pytest.mark.parametrize(
    ("rest", "earlier", "passed"),
    [
        pytest.param((0.12, 0.09), [], False, id="no earlier days: it fell by what the candidate won"),
        pytest.param((0.12, 0.09), STEADY, False, id="on other days it does not fall"),
        pytest.param((0.12, 0.09), FALLING, True, id="at these hours it falls every day"),
        pytest.param((0.12, 0.06), FALLING, False, id="it fell by more than every day"),
        pytest.param((0.12, 0.09), RESTLESS, True, id="on other days it moves as much"),
        pytest.param((0.12, 0.12), FALLING, True, id="it did not fall, though it does on other days"),
        pytest.param((0.12, 0.12), STEADY, True, id="it did not fall"),
        pytest.param((0.12, 0.09), STEADY[:1], False, id="one day says too little"),
        pytest.param((0.12, 0.09), [(0.0, 0.1)] * 3, False, id="days on which the rest was not there"),
    ],
)
def test_earlier_days_tell_how_the_rest_moves(
    rest: tuple[float, float], earlier: list[tuple[float, float]], passed: bool
) -> None:
    assert judged((0.0, 0.03), rest, earlier) is passed


def test_earlier_days_are_never_taken_for_less_noisy_than_sampling() -> None:
    # 0.1 % of 4,000 samples, in a domain of half of them: days that happen to be alike change nothing.
    own, rest = Shares(0.0, 0.001, 4000, 4000), Shares(0.5, 0.499, 4000, 4000)
    alike = [Shares(0.5, 0.5, 4000, 4000)] * 7
    assert judge_cost_shift(own, rest, DOMAIN, earlier=alike).passed


def test_two_quiet_days_say_no_less_than_none() -> None:
    own, rest = Shares(0.0, 0.04, 60_000, 20_000), Shares(0.12, 0.08, 60_000, 20_000)
    quiet = [Shares(0.12, after, 60_000, 20_000) for after in (0.1201, 0.1199)]
    assert not judge_cost_shift(own, rest, DOMAIN).passed
    assert not judge_cost_shift(own, rest, DOMAIN, earlier=quiet).passed
