"""``smidgen bench adaptive``: policies on windows with truth, pruning by blocks, and what is shown."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import orjson
import pytest
from click.testing import CliRunner

from agents.host.parts import Part
from agents.host.rules import Identity
from agents.profiles.formats import Stack
from agents.sampling.kernels import SamplerError
from loadgen.bench.overhead import adaptive, rates
from loadgen.bench.overhead.adaptive import policy_line, pruning_line
from loadgen.bench.overhead.blocks import BlockAnswers
from loadgen.bench.overhead.policies import Follower, Policy, Window, fixed, true_shares, within
from loadgen.bench.overhead.policies import adaptive as adaptive_policy
from loadgen.bench.overhead.pruning import PruningCost, measure_pruning
from loadgen.bench.overhead.rates import PolicyCost, Sampled, measure_policies
from loadgen.bench.overhead.services import RunningService
from loadgen.harness import Ratio
from pipeline.cli import smidgen

WINDOW_S = 2.0


def part(number: int, total: int, taxes: int, length_s: float = WINDOW_S) -> Part:
    stacks = {("main", "handle", "total"): total, ("main", "handle", "taxes"): taxes, ("main", "write"): 5}
    begin = number * WINDOW_S
    return Part(Identity("bench"), 50.0, begin, begin + length_s, stacks)


def rates_of(policy: Policy, shares: list[float]) -> list[float]:
    """Return the rates that a policy asks for, at a service of one CPU whose shares are as given."""
    follower, found = Follower(policy, WINDOW_S), []
    for number, share in enumerate(shares):
        rate_hz = follower.rate_of(None)  # type: ignore[arg-type]
        found.append(rate_hz)
        total = round(share * rate_hz * WINDOW_S)
        follower.take(part(number, total, round(rate_hz * WINDOW_S) - total))
    return found


def test_an_adaptive_rate_falls_while_the_profile_stays_and_rises_where_it_changes() -> None:
    found = rates_of(adaptive_policy(1000, WINDOW_S), [0.25] * 30 + [0.75] * 3)
    assert found[0] == max(found[31:]) == 1000
    assert found[30] < 50


def test_a_fixed_rate_stays() -> None:
    assert fixed(49, 1000, WINDOW_S).is_fixed
    assert not adaptive_policy(1000, WINDOW_S).is_fixed
    assert set(rates_of(fixed(49, 1000, WINDOW_S), [0.25] * 5 + [0.75] * 5)) == {49}


def test_a_window_has_its_own_share_and_that_of_all_since_the_last_change() -> None:
    follower = Follower(fixed(50, 1000, WINDOW_S), WINDOW_S)
    for number, total in enumerate((20, 30)):
        follower.take(part(number, total, 100 - total))
    follower.take(part(2, 99, 1, length_s=0.5))  # the end of sampling
    assert [(window.own, window.pooled) for window in follower.windows] == [(0.2, 0.2), (0.3, 0.25)]
    assert follower.stacks["main", "write"] == 10


def test_the_truth_of_a_window_is_what_was_spent_in_it() -> None:
    answers = BlockAnswers({}, np.array([0.0, 1, 2, 3]), np.array([[0, 0], [1, 3], [4, 4], [5, 7]]) * 10**9)
    windows = [Window(0, 1, 9, 0, 0), Window(1, 2, 9, 0, 0), Window(0.5, 1.5, 9, 0, 0), Window(2, 4, 9, 0, 0)]
    inside = within(windows, answers)
    assert inside == windows[:3]
    assert true_shares(inside, answers) == pytest.approx([0.25, 0.75, 0.5])


def stacks_of(rare: int) -> dict[Stack, int]:
    rng = np.random.default_rng(1)
    found: dict[Stack, int] = {("main", f"hot{number}"): 4000 for number in range(10)}
    for number in range(rare):
        names = [f"f{each}" for each in rng.integers(0, 200, 12)]
        found["main", *names, f"hot{number % 10}"] = 1
    return found


def test_pruning_is_chosen_by_one_block_and_measured_on_the_others() -> None:
    cost = measure_pruning("python", "py-spy", [stacks_of(3000)] * 2)
    assert (cost.stacks, cost.program) == (3010, "python")
    assert cost.share > 0
    assert 0 < cost.error < 0.0116


def test_of_few_stacks_nothing_is_pruned() -> None:
    assert measure_pruning("python", "py-spy", [{("a",): 3, ("b",): 5}] * 2) == PruningCost(
        "python", "py-spy", 2, 0.0, 0.0, 0.0
    )


ANSWERS = BlockAnswers(
    {"throughput": 2.0, "p99": 0.1, "p99.9": 0.2, "cpu": 0.003},
    np.array([0.0, 2.0, 4.0]),
    np.array([[0, 0], [1, 3], [4, 4]]) * 10**9,
)


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float]]:
    """Answer every block at once, and return how long each was and when its requests changed."""
    asked: list[tuple[float, float]] = []

    def ask_for(_: RunningService, block_s: float, more_after_s: float) -> BlockAnswers:
        asked.append((block_s, more_after_s))
        return ANSWERS

    monkeypatch.setattr(rates, "ask_for", ask_for)
    return asked


def sampled(folder: Path) -> Sampled:
    return Sampled("python", "fake", RunningService(1, io.BytesIO(), io.BytesIO()), folder, WINDOW_S, 4.0, 2)


def test_policies_are_measured_against_what_the_program_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answered: list[tuple[float, float]]
) -> None:
    @contextmanager
    def followed(policy: Policy, *_: object) -> Iterator[Follower]:
        follower = Follower(policy, WINDOW_S)
        yield follower
        rate_hz = policy.config.lowest_hz
        follower.windows += [Window(0, 2, rate_hz, 0.35, 0.26), Window(2, 4, rate_hz, 0.65, 0.74)]
        follower.windows.append(Window(4, 6, rate_hz, 1.0, 1.0))  # after the last answer
        follower.stacks["main", "total"] += 3

    monkeypatch.setattr(rates, "followed", followed)
    policies = [adaptive_policy(100, WINDOW_S), fixed(11, 100, WINDOW_S), fixed(49, 100, WINDOW_S)]
    blocks: list[None] = []
    costs, stacks = measure_policies(sampled(tmp_path), policies, lambda: blocks.append(None))
    assert [cost.policy for cost in costs] == ["adaptive", "fixed", "fixed"]
    assert [cost.error for cost in costs] == pytest.approx([0.01, 0.1, 0.1])
    assert [cost.pooled_error for cost in costs] == pytest.approx([0.01] * 3)
    assert [cost.windows for cost in costs] == [4, 4, 4]
    assert [cost.mean_hz for cost in costs] == [25, 11, 49]
    assert {name: ratio.mean for name, ratio in costs[0].ratios.items()} == pytest.approx(
        dict.fromkeys(ANSWERS.figures, 1.0)
    )
    assert stacks == [{("main", "total"): 3}] * 2
    assert answered == [(4.0, 2.0)] * 8
    assert len(blocks) == 8


@pytest.mark.usefixtures("answered")
def test_a_block_without_a_window_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def followed(policy: Policy, *_: object) -> Iterator[Follower]:
        yield Follower(policy, WINDOW_S)

    monkeypatch.setattr(rates, "followed", followed)
    with pytest.raises(SamplerError, match="make it longer"):
        measure_policies(sampled(tmp_path), [fixed(11, 100, WINDOW_S)], lambda: None)


COST = PolicyCost(
    "go", "perf", "adaptive", 300, 20.5, 90, 0.012, 0.012, 0.876, 0.005, {"cpu": Ratio(0.99, 0.98, 1.01)}
)
PRUNED = PruningCost("go", "perf", 29.0, 0.05, 0.3, 0.004)


def test_lines_say_what_was_measured() -> None:
    assert policy_line(COST) == (
        "go     perf           adaptive    300  mean 20.5 Hz  error 1.20 points, pooled 1.20, 90 windows  "
        "saved 88 %  kernel 0.5 %  cpu 0.990 (0.980 to 1.010)"
    )
    assert pruning_line(PRUNED) == (
        "go     perf           pruning  5.0 % of the samples in 29 stacks  time saved 30 %  MAPE 0.40 %"
    )


def test_the_command_measures_each_program_with_its_best_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str, int]] = []

    @contextmanager
    def started(name: str, _: Path) -> Iterator[RunningService]:
        yield RunningService(1, io.BytesIO(), io.BytesIO(b"spent 1 3\n" * 2))

    def measure(
        one: Sampled, policies: list[Policy], _: object
    ) -> tuple[list[PolicyCost], list[Mapping[Stack, int]]]:
        asked.append((one.program, one.kernel, len(policies)))
        if one.program == "cpp":
            raise SamplerError("perf is not installed")
        return [COST], [{("a",): 3}] * 2

    monkeypatch.setattr(adaptive, "started", started)
    monkeypatch.setattr(adaptive, "suitable_kernels", lambda _: ("perf", "austin"))
    monkeypatch.setattr(adaptive, "measure_policies", measure)
    words = ["bench", "adaptive", "--program", "go", "--program", "cpp", "--hz", "11"]
    done = CliRunner().invoke(smidgen, [*words, "--json"])
    assert [orjson.loads(line)["program"] for line in done.stdout.splitlines()[:2]] == ["go", "go"]
    assert orjson.loads(done.stdout.splitlines()[2]) == {
        "what": "cpp, perf",
        "reason": "perf is not installed",
    }
    done = CliRunner().invoke(smidgen, words)
    assert done.stdout.splitlines() == [
        policy_line(COST),
        pruning_line(PruningCost("go", "perf", 1.0, 0.0, 0.0, 0.0)),
    ]
    assert "cpp, perf: left out: perf is not installed" in done.stderr
    assert asked == [("go", "perf", 2), ("cpp", "perf", 2)] * 2


def test_a_block_shorter_than_its_windows_is_refused() -> None:
    done = CliRunner().invoke(smidgen, ["bench", "adaptive", "--duration", "5s", "--window", "2s"])
    assert done.exit_code != 0
