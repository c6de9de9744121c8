"""Builds a stage by its name: the one place that knows what each of them needs.

A stage is imported when it is built. What all need takes 2 s and 200 MB, what aggregate needs a third.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pipeline.clock import Clock
from pipeline.codec.gates import read_gates
from pipeline.codec.names import read_namings
from pipeline.codec.quotas import read_quotas
from pipeline.config import Settings
from pipeline.errors import ConfigError
from pipeline.stages.base import Stage
from pipeline.stages.gather.symbols import SymbolStore
from pipeline.storage.interface import Store
from pipeline.workloads import RELEASE_COSTS, Workload

if TYPE_CHECKING:
    from pipeline.detect.idleness import Readings
    from pipeline.stages.ablation import Without

SCAN_STAGES: tuple[str, ...] = ("aggregate", "detect", "filter", "dedup", "rootcause")
"""Names of the stages from samples to regressions, in the order of the flow."""

STAGES: tuple[str, ...] = ("aggregate", "detect", "releases", "filter", "dedup", "rootcause", "judge")
"""Names of all stages, likewise; releases joins that flow at deduplication.

Judge has one of its own, from trials to verdicts."""


def build_stage(
    name: str,
    *,
    settings: Settings,
    workloads: tuple[Workload, ...],
    store: Store,
    streams: Mapping[str, str],
    clock: Clock,
    without: Without = frozenset(),
    readings: Readings | None = None,
) -> Stage:
    """Return a stage ready to handle batches.

    Args:
        name: One of STAGES.
        settings: Window widths, timeouts and quotas.
        workloads: What detect scans and what the later stages know how to judge.
        store: Open and migrated.
        streams: By topic, the name of its log, kept with every counted row.
        clock: Detects messages from the future, and partitions that have fallen silent.
        without: Steps to leave out, which is for measuring what they are worth.
        readings: How far aggregate has read its topics, if detect and releases are to ask; else it has read
            all there is.

    Raises:
        ConfigError: an unknown name, or a file that the settings name and that is wrong.
    """
    namings = read_namings(settings.names)
    by_symbols = SymbolStore(store, namings)
    match name:
        case "aggregate":
            from pipeline.stages.aggregate import AggregateStage

            return AggregateStage(
                store=store,
                clock=clock,
                streams=streams,
                window_s=settings.window_s,
                stack_window_s=settings.stack_window_s,
                quotas=read_quotas(settings.quotas) if settings.quotas else None,
                namings=namings,
            )
        case "detect":
            from pipeline.stages.detect import DetectStage

            return DetectStage(
                store=by_symbols,
                clock=clock,
                streams=streams,
                workloads=workloads,
                window_s=settings.window_s,
                partition_idle_s=settings.partition_idle_s,
                without=without,
                readings=readings,
            )
        case "releases":
            from pipeline.stages.releases import ReleasesStage

            return ReleasesStage(
                store=store,
                clock=clock,
                streams=streams,
                partition_idle_s=settings.partition_idle_s,
                readings=readings,
            )
        case "filter":
            from pipeline.stages.filter import FilterStage

            return FilterStage(store=by_symbols, workloads=workloads, without=without)
        case "dedup":
            from pipeline.stages.dedup import DedupStage

            return DedupStage(store=by_symbols, workloads=(*workloads, RELEASE_COSTS), without=without)
        case "rootcause":
            from pipeline.stages.rootcause import RootcauseStage

            gates = read_gates(settings.gates) if settings.gates else {}
            gates = {gate: namings.default.symbols(names) for gate, names in gates.items()}
            return RootcauseStage(
                store=by_symbols,
                workloads=(*workloads, RELEASE_COSTS),
                gates=gates,
                learns=settings.learn_suspects,
                without=without,
                clock=clock,
            )
        case "judge":
            from pipeline.stages.gather.trial_models import load_models
            from pipeline.stages.judge import JudgeStage

            return JudgeStage(
                store=store,
                clock=clock,
                models=load_models(),
                quotas=read_quotas(settings.quotas) if settings.quotas else None,
            )
    raise ConfigError(f"unknown stage {name!r}; stages are {', '.join(STAGES)}")
