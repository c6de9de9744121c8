from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.cost_shift.decision import judge_cost_shift
from pipeline.analysis.cost_shift.domains import Domain, LabelGroup, find_domains, find_members
from pipeline.analysis.cost_shift.refactorings import Refactorings, compare_stacks, find_refactorings
from pipeline.analysis.cost_shift.stack_history import StackHistory, stack_history
from pipeline.analysis.stacks import index_stacks
from pipeline.model import Decision, DomainDecision, SeriesKey, StackMatrix
from tests.support.builders import build_stacks
from tests.support.calibration import calibrated

SAMPLES = 20_000


def scaled(rows: dict[str, tuple[float, float]], samples: int = SAMPLES) -> StackMatrix:
    """Stacks by their percentages before and after; the rest is idle."""
    before, after = (sum(pair[i] for pair in rows.values()) for i in (0, 1))
    full = {**rows, "main->idle": (100 - before, 100 - after)}
    return build_stacks({stack: (b * samples / 100, a * samples / 100) for stack, (b, a) in full.items()})


def judge(
    history: StackHistory, label: str, *, groups: list[LabelGroup] | None = None, refactorings: bool = True
) -> tuple[Decision, dict[str, DomainDecision]]:
    """Judge a subroutine by all its domains; decisions by the kind of the domain."""
    similar = compare_stacks(history)
    domains = find_domains(
        history.index, find_members(history.index), SeriesKey("subroutine", label), groups=groups or []
    )
    decision, by_domain = judge_cost_shift(
        history,
        history.index.holding([label]),
        [Domain(domain.name, similar.with_refactored(domain.rows)) for domain in domains],
        find_refactorings(history, similar, label) if refactorings else Refactorings(),
    )
    return decision, {one.domain.partition(":")[0]: one for one in by_domain}


def shifted(matrix: StackMatrix, label: str) -> bool:
    return not judge(stack_history(index_stacks(matrix)), label)[0].passed


@pytest.mark.parametrize(
    ("rows", "label", "expected"),
    [
        pytest.param(
            {"main->page": (20, 12), "main->page->page_rows": (0, 8)}, "page_rows", True, id="extract"
        ),
        pytest.param({"main->page->old": (8, 0), "main->page->new": (0, 8)}, "new", True, id="rename"),
        pytest.param(
            {"main->page->a": (10, 5), "main->page->b": (5, 10)}, "b", True, id="work moved to a sibling"
        ),
        pytest.param(
            {"main->page->Cart.x": (6, 11), "main->other->Cart.y": (9, 4)},
            "Cart.x",
            True,
            id="work moved within a class, across callers",
        ),
        pytest.param({"main->page->a": (10, 17), "main->page": (5, 5)}, "a", False, id="a true regression"),
        pytest.param({"main->page->new": (0, 6), "main->page": (15, 15)}, "new", False, id="a costly helper"),
        pytest.param(
            {"main->page->a": (10, 17), "main->page->b": (5, 4)},
            "a",
            False,
            id="a true regression beside a small improvement",
        ),
        pytest.param(
            {"main->page->a": (10, 17), "main->list->b": (8, 1)},
            "a",
            False,
            id="a true regression, and an improvement as large elsewhere",
        ),
        pytest.param({"main->new.page->new.page.a": (0, 7)}, "new.page.a", False, id="the domain is new too"),
        pytest.param(
            {"main->page->old": (4, 0), "main->page->new": (0, 8)},
            "new",
            False,
            id="what replaced it costs twice as much",
        ),
        pytest.param(
            {"main->page->old": (8, 0), "main->page->new": (0, 3)},
            "new",
            True,
            id="what replaced it costs less",
        ),
        pytest.param({"main->a": (10, 10), "main->b": (10, 10)}, "a", False, id="nothing happened"),
        pytest.param({"main->a": (10, 5), "main->b": (10, 15)}, "a", False, id="it fell"),
    ],
)
def test_cost_shift(rows: dict[str, tuple[float, float]], label: str, expected: bool) -> None:
    assert shifted(scaled(rows), label) is expected


@pytest.mark.parametrize("samples", [200, 300, 500])
def test_what_lost_half_by_chance_has_not_become_the_candidate(samples: int) -> None:
    """Two neighbours lost a half more than the growth of the whole takes, in a few seconds of samples."""
    rows = {"total": (10.3, 28.4), "read": (12.7, 5.1), "discount": (12.7, 5.1), "tax": (22.0, 20.0)}
    rows |= {"weigh": (22.0, 22.0), "receipt": (14.0, 13.0)}
    stacks = {f"serve->{name}": (b * 20.0, a * samples / 100) for name, (b, a) in rows.items()}
    stacks["serve"] = (6.3 * 20, 6.4 * samples / 100)
    decision, by_domain = judge(stack_history(index_stacks(build_stacks(stacks))), "total")
    assert decision.passed
    assert "renamed from" not in by_domain


def test_figure_1b_cost_moves_between_two_subroutines() -> None:
    # FBDetect Figure 1(b): one subroutine's cost rises because another's, of the same caller, falls.
    decision, by_domain = judge(
        stack_history(
            index_stacks(scaled({"main->c->a": (1.0, 0.0), "main->c->b": (1.0, 2.0), "main->c": (1, 1)}))
        ),
        "b",
    )
    assert not decision.passed
    assert decision.code == "shifted"
    assert by_domain["callers"].finding == "shifted"
    assert by_domain["callers"].before == pytest.approx(0.03)
    assert by_domain["callers"].after == pytest.approx(0.03)
    assert by_domain["callers"].statistic == pytest.approx(0.0, abs=1e-9)


def test_a_domain_too_large_for_a_tiny_regression_is_not_judged() -> None:
    # 0.05 % of the samples, in a domain that holds half of them: its noise hides the answer.
    matrix = scaled({"main->page": (50, 50), "main->page->tiny": (0.0, 0.05)})
    decision, by_domain = judge(stack_history(index_stacks(matrix)), "tiny")
    assert decision.passed
    assert by_domain["callers"].finding == "too large"


def test_a_domain_that_did_not_exist_before_is_new() -> None:
    matrix = scaled({"main->page": (20, 13), "main->page->Row.draw": (0, 4), "main->page->Row.fit": (0, 3)})
    decision, by_domain = judge(stack_history(index_stacks(matrix)), "Row.draw", refactorings=False)
    assert by_domain["class"].finding == "new"
    assert by_domain["callers"].finding == "shifted"
    assert not decision.passed


def test_a_domain_of_the_users_own_counts() -> None:
    rows = {"main->page->x": (6.0, 11.0), "main->other->y": (9.0, 4.0)}
    group = LabelGroup("defined: drawing", frozenset({"x", "y"}))
    history = stack_history(index_stacks(scaled(rows)))
    assert judge(history, "x")[0].passed
    decision, by_domain = judge(history, "x", groups=[group])
    assert not decision.passed
    assert by_domain["defined"].finding == "shifted"


def test_what_is_alone_has_no_domain() -> None:
    decision, by_domain = judge(stack_history(index_stacks(build_stacks({"main": (1, 1)}))), "main")
    assert decision == Decision("cost_shift", True, 1.0, 0.1)
    assert by_domain == {}


@pytest.mark.parametrize("side", ["before", "after"])
def test_without_samples_on_one_side_nothing_is_a_shift(side: str) -> None:
    counts = (0.0, 5.0) if side == "before" else (5.0, 0.0)
    assert not shifted(build_stacks({"m->a": counts, "m->b": counts}), "a")


@pytest.mark.parametrize(
    ("samples", "silenced"),
    calibrated([(400, 0.0), (2000, 0.65), (8000, 0.99)], lambda case: case[0] == 2000),
)
def test_over_many_draws_shifts_are_silenced_and_regressions_kept(samples: int, silenced: float) -> None:
    # A piece of 4 % is extracted from a parent of 12 %, or appears beside it as new work.
    rng = np.random.default_rng(11)
    stacks = (("main", "page"), ("main", "page", "piece"), ("main", "other"))
    dropped = {"shift": 0, "regression": 0}
    draws = 300
    for kind, after in {"shift": [0.08, 0.04, 0.88], "regression": [0.12, 0.04, 0.84]}.items():
        for _ in range(draws):
            before = rng.multinomial(3 * samples, [0.12, 0.0, 0.88]).astype(np.float64)
            later = rng.multinomial(samples, np.array(after)).astype(np.float64)
            dropped[kind] += shifted(StackMatrix(stacks, before, later, before.sum(), later.sum()), "piece")
    assert dropped["shift"] / draws >= silenced
    assert dropped["regression"] / draws <= 0.02  # 0.005, and three standard errors of 300 draws


def week(rest: tuple[float, float], earlier: list[tuple[float, float]], samples: float) -> StackHistory:
    """A piece of 3 % that appears below page, whose own work changes as given; the same on earlier days."""

    def matrix(piece: float, page: tuple[float, float]) -> StackMatrix:
        stacks = (("main", "page", "piece"), ("main", "page"), ("main", "idle"))
        before = np.array([0.0, page[0], 1 - page[0]]) * samples
        after = np.array([piece, page[1], 1 - page[1] - piece]) * samples
        return StackMatrix(stacks, before, after, samples, samples)

    return stack_history(index_stacks(matrix(0.03, rest)), [matrix(0.0, pair) for pair in earlier])


STEADY = [(0.120, 0.1203), (0.120, 0.1198), (0.121, 0.1209), (0.119, 0.119), (0.12, 0.1202), (0.12, 0.1197)]
FALLING = [(before, after - 0.03) for before, after in STEADY]
RESTLESS = [(0.12, 0.17), (0.12, 0.06), (0.10, 0.14), (0.12, 0.09), (0.15, 0.10), (0.09, 0.12)]


@pytest.mark.parametrize(
    ("rest", "earlier", "passed"),
    [
        pytest.param((0.12, 0.09), [], False, id="no earlier days: it fell by what the candidate won"),
        pytest.param((0.12, 0.09), STEADY, False, id="on other days it does not fall"),
        pytest.param((0.12, 0.09), FALLING, True, id="at these hours it falls every day"),
        pytest.param((0.12, 0.09), RESTLESS, True, id="on other days it moves as much"),
        pytest.param((0.12, 0.12), FALLING, True, id="it did not fall, though it does on other days"),
        pytest.param((0.12, 0.12), STEADY, True, id="it did not fall"),
        pytest.param((0.12, 0.09), STEADY[:1], False, id="one day says too little"),
        pytest.param((0.12, 0.09), [(0.0, 0.12)] * 3, False, id="days on which the rest was not there"),
        pytest.param((0.12, 0.09), [(0.09, 0.09)] * 6, True, id="it was a spike that ended"),
        pytest.param((0.12, 0.02), STEADY, True, id="it fell by much more"),
    ],
)
def test_earlier_days_show_how_the_rest_moves(
    rest: tuple[float, float], earlier: list[tuple[float, float]], passed: bool
) -> None:
    assert judge(week(rest, earlier, 1e6), "piece")[0].passed is passed


def test_earlier_days_are_never_taken_for_less_noisy_than_sampling() -> None:
    # A piece of 3 % of 200 samples, six: days that happen to be similar change nothing.
    similar = [(0.5, 0.5)] * 7
    assert judge(week((0.5, 0.47), similar, 200), "piece")[0].passed


def test_two_quiet_days_say_no_less_than_none() -> None:
    quiet = [(0.12, after) for after in (0.1201, 0.1199)]
    assert not judge(week((0.12, 0.09), [], 60_000), "piece")[0].passed
    assert not judge(week((0.12, 0.09), quiet, 60_000), "piece")[0].passed


@pytest.mark.parametrize(
    ("near", "passed"),
    [
        pytest.param((0.12, 0.09), False, id="it fell just then"),
        pytest.param((0.09, 0.09), True, id="it had fallen hours before"),
        pytest.param((0.12, 0.12), True, id="it fell hours later"),
    ],
)
def test_the_rest_has_to_fall_when_the_candidate_rises(near: tuple[float, float], passed: bool) -> None:
    stacks = (("main", "page", "piece"), ("main", "page"), ("main", "idle"))

    def matrix(page: tuple[float, float]) -> StackMatrix:
        before = np.array([0.0, page[0], 1 - page[0]]) * 1e6
        after = np.array([0.03, page[1], 0.97 - page[1]]) * 1e6
        return StackMatrix(stacks, before, after, 1e6, 1e6)

    assert (
        judge(stack_history(index_stacks(matrix((0.12, 0.09))), nearer=matrix(near)), "piece")[0].passed
        is passed
    )


def test_spans_nearer_the_change_without_samples_say_nothing() -> None:
    matrix = scaled({"main->page": (20, 12), "main->page->page_rows": (0, 8)})
    empty = StackMatrix((), np.zeros(0), np.zeros(0), 0.0, 0.0)
    assert not judge(stack_history(index_stacks(matrix), nearer=empty), "page_rows")[0].passed
