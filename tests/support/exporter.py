"""Metrics of a worker of all stages that has processed some data, as Prometheus reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from aiohttp.test_utils import TestClient, TestServer

from agents.gateway.base import RequestResult, SkippedPart
from agents.gateway.counts import GatewayCounts
from agents.gateway.service import BufferedOutbox
from agents.host.numbers import AgentState, HostNumbers
from agents.publishing.publisher import Transport
from agents.webhooks.reply_receiver import ReplyReceiver
from pipeline.backtest import flow as driven
from pipeline.delivery.alerts.delivery import DeliveryPlan
from pipeline.delivery.alerts.desk import Desk
from pipeline.delivery.alerts.owners import Owners
from pipeline.delivery.alerts.record import DeliveryRecord as AlertRecord
from pipeline.delivery.alerts.rules import AlertRule
from pipeline.delivery.alerts.rules_file import AlertRules
from pipeline.delivery.alerts.targets import KINDS, Http
from pipeline.kafka import Entry
from pipeline.messages.measurements import encode_metric_points, encode_profile
from pipeline.model import MetricPoints, Outgoing, Record
from pipeline.model.errors import BrokerUnavailable
from pipeline.model.units import DAY_S
from pipeline.settings.config import Settings
from pipeline.settings.topics import load_topics
from pipeline.stages.abilities import handle_whole
from pipeline.stages.base import Stage
from pipeline.stages.factory import STAGES
from pipeline.storage.arrays import ArrayStore
from pipeline.telemetry.metrics import (
    AGENT_OMISSIONS,
    AGENT_REQUESTS,
    GATEWAY_READINGS,
    TOP_FUNCTION_GCPU,
    Sample,
    exposition,
)
from pipeline.worker import service as workers
from tests.support.alert_events import NOW, detected, encoded
from tests.support.builders import build_profile
from tests.support.fleets import BASE, LIVE, SLOWER, START, THROUGHPUT

SETTINGS = Settings.model_validate(
    {"window": 1, "stack_window": 1, "health": "127.0.0.1:0", "broker": "kafka://127.0.0.1:9"}
)
REGRESSED = 50
SECONDS = 80
AFTER_S = 1000.0
"""How long after its last profile the worker is asked: the service is silent by then."""


class _Clock:
    now = START

    def __call__(self) -> float:
        return self.now


def scrape_worker() -> str:
    """Return the metrics of a worker of all stages after a regression and a service's silence.

    Only Kafka is missing: batches come from the flow of backtests, and one partition is reported to lag.
    """
    with pytest.MonkeyPatch.context() as patch:
        return asyncio.run(_scrape(patch))


async def _scrape(patch: pytest.MonkeyPatch) -> str:
    clock = _Clock()
    flow = driven.Flow(ArrayStore(), [LIVE, THROUGHPUT], settings=SETTINGS, clock=clock, stages=STAGES)
    worker = workers.Service(SETTINGS, load_topics(), list(flow.stages.values()), clock)
    counting = {running.name: running.telemetry for running in worker._running}

    def counted(stage: Stage, batch: Sequence[Record]) -> list[Outgoing]:
        outgoing = handle_whole(stage, batch)
        counting[stage.name].published(len(outgoing), 0)
        counting[stage.name].batch(batch, batch, [], 0.1)
        return outgoing

    patch.setattr(driven, "handle_whole", counted)
    patch.setattr(workers, "lags", lambda *_: {("profiles", 0): 3})
    _work(flow, clock)
    clock.now += AFTER_S
    second = build_profile({"main": 1000}, service="mail", start=clock.now - 60.0)
    flow.send("profiles", [encode_profile(second)], partition=1)
    assert worker._health is not None
    worker._tasks.run("lag", _fail)
    async with TestClient(TestServer(worker._health.application())) as client:
        text = await (await client.get("/metrics")).text()
    await worker._tasks.close()
    return text


async def _fail() -> None:
    raise ValueError("a bug")


def _work(flow: driven.Flow, clock: _Clock) -> None:
    """Send the profiles of a service with one slower subroutine, and its throughput."""
    draws = np.random.default_rng(1)
    for second in range(SECONDS):
        clock.now = START + second + 1.0
        mix = SLOWER if second >= REGRESSED else BASE
        shares = np.array(list(mix.values()))
        counts = draws.multinomial(1000, shares / shares.sum())
        profile = build_profile(
            {stack: int(n) for stack, n in zip(mix, counts, strict=True)}, start=START + second
        )
        points = MetricPoints(
            profile.service, "throughput", np.array([START + second]), draws.normal(1000.0, 10.0, 1)
        )
        flow.send("profiles", [encode_profile(profile)])
        flow.send("metrics", [encode_metric_points(points)])


def scrape_agent() -> str:
    """Return the metrics of ``agent host`` after a message of a service, and of ``agent logs``."""
    numbers = HostNumbers()
    numbers.sampled("shop", 7)
    states = dict.fromkeys(("sampled", "waiting", "failing", "covered", "passed"), 1)
    numbers.show(AgentState(states, {"shop": 19.0}))
    omissions: Sample = (AGENT_OMISSIONS, {"reason": "cut"}, 1.0)
    return exposition([*numbers.samples(), (AGENT_REQUESTS, {}, 2.0), omissions])


def scrape_alerts() -> str:
    """Return the metrics of alerts, webhooks and the gateway after an alert that no target took."""
    return asyncio.run(_scrape_alerts())


async def _scrape_alerts() -> str:
    chat = KINDS["webhook"].model_validate({"kind": "webhook", "url": "http://127.0.0.1:9/"})
    plan = DeliveryPlan((AlertRule(to=("chat",)),), {"chat": chat})
    rules = AlertRules(plan, {"chat": chat}, Owners(), "", DAY_S, DAY_S, ())
    store, http = ArrayStore(), Http()
    desk = Desk(rules, AlertRecord(store), http, lambda: NOW)
    await desk.arrived(frozenset({("regressions", 0)}))
    await desk.take([Entry(0, 0, NOW, b"shop", encoded(detected()), ())])
    await desk.tick()
    await desk.arrived(frozenset({("regressions", 0)}))
    await http.close()

    async def refuse(messages: Sequence[Outgoing]) -> None:
        raise AssertionError(messages)

    replies = ReplyReceiver(store, refuse, clock=lambda: NOW)
    return exposition([*desk.samples(), *replies.samples(), *_of_others()])


def _of_others() -> list[Sample]:
    """Return the metrics of a gateway after a request and a scrape, and of a dashboard of a function."""
    counts = GatewayCounts(lambda: NOW, ["pprof"])
    skipped = SkippedPart("not_cpu", "heap: not CPU", is_wrong=False)
    counts.request("pprof", RequestResult(200, "took 1", skipped=(skipped,)), "127.0.0.1", 0.1)
    counts.samples("pprof", 4)
    counts.scrape("taken")
    readings: Sample = (GATEWAY_READINGS, {"outcome": "taken"}, 1.0)
    function = {"service": "shop", "release": "v2", "function": "shop.cart.total"}
    top: Sample = (TOP_FUNCTION_GCPU, function, 0.1)  # of the dashboard
    return [*counts.metrics(), *BufferedOutbox(_connect_nowhere, 1024).metrics(), readings, top]


async def _connect_nowhere() -> Transport:
    raise BrokerUnavailable("nowhere")
