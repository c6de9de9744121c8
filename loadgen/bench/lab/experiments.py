"""A/A trials of the base, then experiments with each commit, and the judge's verdicts on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agents.experiments.replay.connection import address_of_url
from agents.experiments.replay.experiment import (
    DownstreamConfig,
    PaceConfig,
    ReplayExperiment,
    ReplayResult,
    counted_downstream,
    run_trials,
)
from agents.experiments.replay.plan import NamedRequest, RequestChoice, choose, name_endpoints
from agents.experiments.replay.recording import read_recording
from agents.experiments.replay.replayer import ReplayConfig
from agents.experiments.replay.trial_rows import TrialRows
from loadgen.bench.lab.commits import LabCommit, read_commits, write_code
from loadgen.bench.lab.request import LabRequest
from loadgen.bench.lab.sides import STOCK, Sides, record_traffic
from loadgen.engines.kafka.probe import free_ports
from pipeline.commands.trial.reading import read_trials
from pipeline.experiments.trials import Bounds, MetricDecision, MetricVerdict, ModelConfig, judge_trials
from pipeline.experiments.trials import Sides as Points
from pipeline.processes import Group
from pipeline.stages.gather.trial_models import load_models

MODEL = "paired-by-request-trimmed"
"""On shared cores some requests cost much more; and choosing a model by A/A trials takes 40 of them."""

JUDGED = ("cpu_timing_ms ", "downstream ")
"""Beginnings of the metrics that are judged: latencies of a busy machine say little."""

TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class CommitVerdicts:
    """Verdicts of an experiment on a commit."""

    commit: LabCommit
    verdicts: Mapping[str, MetricVerdict]

    @property
    def about(self) -> MetricVerdict | None:
        """The verdict on the metric that the commit is about."""
        return self.verdicts.get(self.commit.judged)

    @property
    def right(self) -> bool:
        """Whether the verdict on the commit's metric is as expected, and no other metric fails."""
        other_verdicts = (verdict for name, verdict in self.verdicts.items() if name != self.commit.judged)
        about = self.about
        return (
            about is not None
            and about.decision.value == self.commit.expected
            and not any(verdict.decision is MetricDecision.FAIL for verdict in other_verdicts)
        )


class Lab:
    """One run of the lab in a folder. ``note`` is called with a text for each step."""

    def __init__(self, folder: Path, config: LabRequest, note: Callable[[str], None]) -> None:
        self._folder = folder
        self._config = config
        self._note = note
        self.processes = Group(folder)
        self._sides = Sides(self.processes)
        self._base = folder / "base"
        self._requests: list[NamedRequest] = []
        self._trials = 0

    async def record(self) -> None:
        """Write the base, record its traffic, and read the recording."""
        write_code(self._base)
        path = self._folder / "shop.jsonl.gz"
        await record_traffic(self._sides, self._base, path, 3 * self._config.requests, self._config.seed)
        self._requests = name_endpoints(read_recording(path).requests)
        self._note(f"{len(self._requests)} requests recorded")

    async def history(self) -> dict[str, Points]:
        """Return A/A trials of the endpoint whose CPU time is judged: both sides run the base."""
        rows = _new_rows()
        endpoint = next(commit.endpoint for commit in read_commits() if commit.metric == "cpu_timing_ms")
        for number in range(self._config.history):
            await self._trial(rows, self._base, endpoint)
            self._note(f"A/A trial {number + 1} of {self._config.history}")
        return self._read(rows, "history")

    async def judge(self) -> list[list[CommitVerdicts]]:
        """Return the verdicts of each repeat."""
        commits = read_commits()
        folders = [write_code(self._folder / commit.name, commit) for commit in commits]
        verdict_rows = []
        for repeat in range(1, self._config.repeats + 1):
            row = []
            for commit, folder in zip(commits, folders, strict=True):
                rows = _new_rows()
                for _ in range(commit.trials or self._config.trials):
                    await self._trial(rows, folder, commit.endpoint)
                points = self._read(rows, f"{commit.name}-{repeat}")
                row.append(CommitVerdicts(commit, judged_points(points, self._config)))
                self._note(f"repeat {repeat} of {self._config.repeats}: {commit.name}, {said(row[-1])}")
            verdict_rows.append(row)
        return verdict_rows

    async def _trial(self, rows: ReplayResult, folder: Path, endpoint: str) -> None:
        """Start both sides, replay requests to them, and add their measurements."""
        config = self._config
        self._trials += 1
        chosen, _ = choose(self._requests, RequestChoice((endpoint,)))
        stocks = free_ports("127.0.0.1", 2)
        listen = (("127.0.0.1", stocks[0]), ("127.0.0.1", stocks[1]))
        addresses = [f"http://127.0.0.1:{port}" for port in stocks]
        async with (
            counted_downstream(DownstreamConfig(listen, answers=STOCK)) as counts,
            self._sides.running([self._base, folder], addresses, self._trials) as (a, b),
        ):
            experiment = ReplayExperiment(
                (address_of_url(a), address_of_url(b)),
                PaceConfig(config.rate, requests=config.requests, warm_up=config.warm_up),
                replay=ReplayConfig(timeout_s=TIMEOUT_S, timings=("cpu",)),
            )
            await run_trials(chosen, experiment, counts=counts, into=rows, first=self._trials)

    def _read(self, rows: ReplayResult, name: str) -> dict[str, Points]:
        """Return the points of trials, by way of the file that ``smidgen trial verdict`` reads."""
        path = self._folder / f"{name}.csv"
        path.write_bytes(rows.rows.csv())
        return {metric: points for metric, points in read_trials(path).items() if metric.startswith(JUDGED)}


def judged_points(points: Mapping[str, Points], config: LabRequest) -> dict[str, MetricVerdict]:
    """Return the judge's verdict on each metric."""
    bounds = dict.fromkeys(points, Bounds(config.threshold, config.alpha))
    verdicts = judge_trials(points, bounds, {}, ModelConfig(load_models(), MODEL))
    return {verdict.metric: verdict for verdict in verdicts}


def noise(past: Mapping[str, Points], config: LabRequest) -> Iterator[MetricVerdict]:
    """Yield the judge's verdicts on A/A trials."""
    yield from judged_points(past, config).values()


def said(judged: CommitVerdicts) -> str:
    """Return the verdict on the metric that a commit is about, as a line."""
    about = judged.about
    if about is None:
        return f"{judged.commit.judged} was not measured"
    estimate = about.measured
    figures = (
        f"{estimate.difference:+.2%} ({estimate.low:+.2%} to {estimate.high:+.2%}), p {estimate.p_value:.2g}"
    )
    return f"{about.decision.value}, {figures}: {'right' if judged.right else 'wrong'}"


def _new_rows() -> ReplayResult:
    return ReplayResult(TrialRows(("cpu",)))
