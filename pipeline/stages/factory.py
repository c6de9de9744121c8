"""Builds a stage by its name: the one place that knows what each of them needs.

A stage is imported when it is built. What all need takes 2 s and 200 MB, what aggregate needs a third.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pipeline.model.clock import Clock
from pipeline.model.errors import ConfigError
from pipeline.settings.config import Settings
from pipeline.settings.gates import read_gates
from pipeline.settings.names import read_namings
from pipeline.settings.quotas import read_quotas
from pipeline.settings.workloads import RELEASE_COSTS, Workload
from pipeline.stages.base import Stage
from pipeline.stages.gather.symbols import SymbolStore
from pipeline.storage.interface import Store

if TYPE_CHECKING:
    from pipeline.analysis.detect.idleness import Readings
    from pipeline.counting.names import Namings
    from pipeline.counting.quota.limits import Quotas
    from pipeline.stages.ablation import Without

SCAN_STAGES: tuple[str, ...] = ("aggregate", "detect", "filter", "dedup", "rootcause")
"""Names of the stages from samples to regressions, in the order of the flow."""


@dataclass(frozen=True, kw_only=True)
class StageNeeds:
    """What stages are built from; each takes its part."""

    settings: Settings  # window widths, timeouts and the files they name
    workloads: tuple[Workload, ...]  # what detect scans and what the later stages know how to judge
    store: Store  # open and migrated
    streams: Mapping[str, str]  # by topic, the name of its log, kept with every counted row
    clock: Clock  # detects messages from the future, and partitions that have fallen silent
    without: Without = frozenset()  # steps to leave out, which is for measuring what they are worth
    readings: Readings | None = None
    """How far aggregate has read, if detect and releases are to ask; else it has read all there is."""

    @cached_property
    def namings(self) -> Namings:
        """Rules for names, as the settings have them."""
        return read_namings(self.settings.names)

    @property
    def quotas(self) -> Quotas | None:
        """Limits of services, where the settings name a file of them."""
        return read_quotas(self.settings.quotas) if self.settings.quotas else None

    @property
    def by_symbols(self) -> SymbolStore:
        """The store by today's names."""
        return SymbolStore(self.store, self.namings)

    @property
    def of_candidates(self) -> tuple[Workload, ...]:
        """Workloads whose candidates reach deduplication: what is scanned, and what releases compares."""
        return (*self.workloads, RELEASE_COSTS)


def build_stage(name: str, needs: StageNeeds) -> Stage:
    """Return a stage, one of STAGES by name, ready to handle batches.

    Raises:
        ConfigError: an unknown name, or a file that the settings name and that is wrong.
    """
    if name not in _BUILDERS:
        raise ConfigError(f"unknown stage {name!r}; stages are {', '.join(STAGES)}")
    return _BUILDERS[name](needs)


def _aggregate(needs: StageNeeds) -> Stage:
    from pipeline.stages.aggregate import AggregateStage

    return AggregateStage(
        store=needs.store,
        clock=needs.clock,
        streams=needs.streams,
        window_s=needs.settings.window_s,
        stack_window_s=needs.settings.stack_window_s,
        quotas=needs.quotas,
        namings=needs.namings,
    )


def _detect(needs: StageNeeds) -> Stage:
    from pipeline.stages.detect import DetectStage

    return DetectStage(
        store=needs.by_symbols,
        clock=needs.clock,
        streams=needs.streams,
        workloads=needs.workloads,
        window_s=needs.settings.window_s,
        partition_idle_s=needs.settings.partition_idle_s,
        without=needs.without,
        readings=needs.readings,
    )


def _releases(needs: StageNeeds) -> Stage:
    from pipeline.settings.release_metrics import read_release_metrics
    from pipeline.stages.releases import ReleasesStage

    return ReleasesStage(
        store=needs.store,
        clock=needs.clock,
        streams=needs.streams,
        partition_idle_s=needs.settings.partition_idle_s,
        metrics=read_release_metrics(path) if (path := needs.settings.release_metrics) else None,
        readings=needs.readings,
    )


def _filter(needs: StageNeeds) -> Stage:
    from pipeline.stages.filter import FilterStage

    return FilterStage(store=needs.by_symbols, workloads=needs.workloads, without=needs.without)


def _dedup(needs: StageNeeds) -> Stage:
    from pipeline.stages.dedup import DedupStage

    return DedupStage(store=needs.by_symbols, workloads=needs.of_candidates, without=needs.without)


def _rootcause(needs: StageNeeds) -> Stage:
    from pipeline.stages.rootcause import RootcauseStage

    gates = read_gates(needs.settings.gates) if needs.settings.gates else {}
    return RootcauseStage(
        store=needs.by_symbols,
        workloads=needs.of_candidates,
        gates={gate: needs.namings.default.symbols(names) for gate, names in gates.items()},
        learns=needs.settings.learn_suspects,
        without=needs.without,
        clock=needs.clock,
    )


def _judge(needs: StageNeeds) -> Stage:
    from pipeline.stages.gather.trial_models import load_models
    from pipeline.stages.judge import JudgeStage

    return JudgeStage(store=needs.store, clock=needs.clock, models=load_models(), quotas=needs.quotas)


_BUILDERS: Mapping[str, Callable[[StageNeeds], Stage]] = {
    "aggregate": _aggregate,
    "detect": _detect,
    "releases": _releases,
    "filter": _filter,
    "dedup": _dedup,
    "rootcause": _rootcause,
    "judge": _judge,
}

STAGES: tuple[str, ...] = tuple(_BUILDERS)
"""Names of all stages, likewise; releases joins that flow at deduplication.

Judge has one of its own, from trials to verdicts."""
