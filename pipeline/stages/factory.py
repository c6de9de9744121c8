"""Builds a stage by its name: the one place that knows what each of them needs."""

from __future__ import annotations

from pipeline.clock import Clock
from pipeline.codec.gates import read_gates
from pipeline.config import Settings
from pipeline.errors import ConfigError
from pipeline.quotas import read_quotas
from pipeline.stages.ablation import NOTHING, Without
from pipeline.stages.aggregate import AggregateStage
from pipeline.stages.base import Stage
from pipeline.stages.dedup import DedupStage
from pipeline.stages.detect import DetectStage
from pipeline.stages.filter import FilterStage
from pipeline.stages.rootcause import RootcauseStage
from pipeline.storage.interface import Store
from pipeline.workloads import Workload

STAGES: tuple[str, ...] = ("aggregate", "detect", "filter", "dedup", "rootcause")
"""Names of the stages, in the order of the flow."""


def build_stage(
    name: str,
    *,
    settings: Settings,
    workloads: tuple[Workload, ...],
    store: Store,
    stream: str,
    clock: Clock,
    without: Without = NOTHING,
) -> Stage:
    """Return a stage ready to handle batches.

    Args:
        name: One of STAGES.
        settings: Window widths, timeouts and quotas.
        workloads: What detect scans and what the later stages know how to judge.
        store: Open and migrated.
        stream: Identity of the broker's log, kept with every counted row.
        clock: Tells messages from the future, and partitions that have fallen silent.
        without: Steps to leave out, which is for measuring what they are worth.

    Raises:
        ConfigError: an unknown name, or a file that the settings name and that is wrong.
    """
    match name:
        case "aggregate":
            return AggregateStage(
                store=store,
                clock=clock,
                stream=stream,
                window_s=settings.window_s,
                stack_window_s=settings.stack_window_s,
                quotas=read_quotas(settings.quotas) if settings.quotas else None,
            )
        case "detect":
            return DetectStage(
                store=store,
                clock=clock,
                stream=stream,
                workloads=workloads,
                window_s=settings.window_s,
                partition_idle_s=settings.partition_idle_s,
                without=without,
            )
        case "filter":
            return FilterStage(store=store, workloads=workloads, without=without)
        case "dedup":
            return DedupStage(store=store, workloads=workloads, without=without)
        case "rootcause":
            gates = read_gates(settings.gates) if settings.gates else None
            return RootcauseStage(store=store, workloads=workloads, gates=gates)
    raise ConfigError(f"unknown stage {name!r}; stages are {', '.join(STAGES)}")
