"""Kinds of injection by name, and injections from a scenario's list of groups."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping

from loadgen.fleet.inject.cost_shift import inject_cost_shift
from loadgen.fleet.inject.cron import inject_cron
from loadgen.fleet.inject.effects import Injected
from loadgen.fleet.inject.hit_ratio import inject_hit_ratio
from loadgen.fleet.inject.library import inject_library
from loadgen.fleet.inject.new_feature import inject_new_feature
from loadgen.fleet.inject.order import Order
from loadgen.fleet.inject.refactoring import inject_refactoring
from loadgen.fleet.inject.regression import (
    inject_cascade,
    inject_gradual,
    inject_improvement,
    inject_scoped,
    inject_service_metric,
    inject_spike_then_step,
    inject_step,
)
from loadgen.fleet.inject.rollout import inject_experiment, inject_only, inject_rollout
from loadgen.fleet.inject.seasonal import inject_seasonal
from loadgen.fleet.inject.site import NothingFits, Site
from loadgen.fleet.inject.transient import inject_transient
from loadgen.fleet.scenario import InjectionKind, InjectionSpec, Scenario
from loadgen.fleet.streams import Streams

log = logging.getLogger(__name__)

INJECTORS: Mapping[InjectionKind, Callable[[Order, Site], Injected]] = {
    "step": inject_step,
    "gradual": inject_gradual,
    "scoped": inject_scoped,
    "cascade": inject_cascade,
    "improvement": inject_improvement,
    "transient": inject_transient,
    "spike_then_step": inject_spike_then_step,
    "seasonal": inject_seasonal,
    "cost_shift": inject_cost_shift,
    "new_feature": inject_new_feature,
    "service_metric": inject_service_metric,
    "refactoring": inject_refactoring,
    "cron": inject_cron,
    "library": inject_library,
    "hit_ratio": inject_hit_ratio,
    "experiment": inject_experiment,
}

COMMON = ("library",)
"""Kinds that befall all services of a scenario together, so their draws are the same in each."""


def inject_all(scenario: Scenario, site: Site, streams: Streams) -> list[Injected]:
    """Carry out every group of a scenario, in order.

    Each injection has its own stream of random numbers. It depends only on the subroutines chosen before, so
    that two injections never share a subroutine while others are free.
    """
    done: list[Injected] = []
    ordered = [(group, ordinal) for group in scenario.inject for ordinal in range(group.count)]
    for group, ordinal in ordered:
        source = streams.common or streams if group.kind in COMMON else streams
        rng = source.of("inject", group.key, str(ordinal))
        with contextlib.suppress(NothingFits):
            done.append(_injector(group)(Order(group, ordinal, rng, scenario.changes), site))
    if len(done) < len(ordered):
        log.warning("%d of %d injections fit nowhere", len(ordered) - len(done), len(ordered))
    return done


def _injector(group: InjectionSpec) -> Callable[[Order, Site], Injected]:
    if group.rollout:
        return inject_rollout
    return inject_only if group.only else INJECTORS[group.kind]
