from __future__ import annotations

import asyncio
import math
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NoReturn

import cramjam
import numpy as np
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from google.protobuf import json_format

from agents.gateway import service
from agents.gateway.access import Client as Sender
from agents.gateway.base import DecodeSetup, Request
from agents.gateway.intake import IntakeRules
from agents.gateway.scrape import Scraper
from agents.gateway.service_metrics import ServiceMetrics
from agents.gateway.targets import ScrapeTarget
from agents.metrics import MetricMap
from agents.metrics.otlp import OTLP_METRICS
from agents.metrics.remote_write import REMOTE_WRITE, V2_TYPE
from pipeline.messages.measurements import decode_metric_points
from pipeline.model import MetricPoints, Outgoing
from pipeline.model.errors import BrokerUnavailable
from tests.support.metric_senders import add_metric, add_point, otlp_request, write_request
from tests.unit.agents.gateway.support import NOW, Bench, Client

BOUNDS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
LABELS = {"service": "shop", "route": "/cart"}
NAME = "http_request_duration_seconds"
STEP_S = 15.0
SETTINGS = {"wait": "20s"}

Send = Callable[[Client, float, "Took"], Awaitable[int]]


class Took:
    """What a host counted since it began, of requests whose times are known."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.counts = np.zeros(len(BOUNDS) + 1, dtype=np.int64)

    def serve(self, slowness: float) -> list[float]:
        """Serve some requests, and return how long they took."""
        took = slowness * self._rng.lognormal(-2.5, 0.5, 400)
        self.counts += np.histogram(took, (0, *BOUNDS, math.inf))[0]
        return list(map(float, took))


def compressed(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


async def send_write(client: Client, now: float, took: Took, host: str = "a") -> int:
    at_most = np.cumsum(took.counts)
    series: list[tuple[Mapping[str, str], float, float]] = [
        ({**LABELS, "__name__": f"{NAME}_bucket", "instance": host, "le": f"{le}"}, now, float(n))
        for le, n in zip((*BOUNDS, "+Inf"), at_most, strict=True)
    ]
    for part in (series[:3], series[3:]):  # a sender may cut a histogram in two
        headers = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"}
        answer = await client.post("/api/v1/write", data=compressed(write_request(part)), headers=headers)
    return answer.status


def otlp(now: float, took: Took) -> Any:
    request = otlp_request("shop")
    data = add_metric(request, NAME, "s").histogram
    data.aggregation_temporality = 2
    counts = {"bucket_counts": took.counts.tolist(), "count": int(took.counts.sum())}
    point = add_point(data, now, NOW, explicit_bounds=BOUNDS, **counts)
    route = point.attributes.add(key=b"http.route")
    route.value.string_value = b"/cart"
    return request


async def send_otlp(client: Client, now: float, took: Took) -> int:
    headers = {"Content-Type": "application/x-protobuf"}
    answer = await client.post("/v1/metrics", data=otlp(now, took).SerializeToString(), headers=headers)
    return answer.status


async def send_json(client: Client, now: float, took: Took) -> int:
    spelt = OTLP_METRICS.as_json["Request"].FromString(otlp(now, took).SerializeToString())
    answer = await client.post("/v1/metrics", json=json_format.MessageToDict(spelt))
    assert await answer.json() == {}
    return answer.status


def points(metrics: ServiceMetrics, now: float) -> dict[str, MetricPoints]:
    found = [decode_metric_points(message.value) for message in metrics.complete(now)]
    return {each.metric: each for each in found}


@pytest.mark.parametrize("send", [send_write, send_otlp, send_json])
async def test_a_service_that_gets_slower_has_the_right_p99(send: Send) -> None:
    metrics = ServiceMetrics(MetricMap.model_validate(SETTINGS))
    bench = Bench(receivers=metrics.receivers)
    took, true = Took(1), []
    async with bench.client() as client:
        for step in range(40):
            bench.now = NOW + step * STEP_S
            true.append(took.serve(1.0 if step <= 20 else 3.0))
            assert await send(client, bench.now, took) == 200
    found = points(metrics, bench.now)
    p99 = found[f"{NAME}.p99{{/cart}}"]
    assert (p99.service, p99.unit, p99.kind) == ("shop", "s", "latency")
    assert len(p99.values) >= 15
    for time, value in zip(p99.timestamps, p99.values, strict=True):
        step = round((time - NOW) / STEP_S)
        exact = float(np.quantile(np.concatenate(true[step + 1 : step + 3]), 0.99))
        bucket = int(np.searchsorted(BOUNDS, exact))
        assert (0, *BOUNDS)[bucket] <= value <= BOUNDS[min(bucket, len(BOUNDS) - 1)]
    assert found[f"{NAME}.rate{{/cart}}"].values == pytest.approx(400 / STEP_S)


async def test_a_client_adds_nothing_to_a_service_that_is_not_its_own() -> None:
    metrics = ServiceMetrics(MetricMap.model_validate(SETTINGS))
    bench = Bench(
        IntakeRules(clients=(Sender("other", "a-long-secret", ("other",)),)), receivers=metrics.receivers
    )
    async with bench.client() as client:
        headers = {"Authorization": "Bearer a-long-secret", "Content-Encoding": "snappy"}
        headers["Content-Type"] = "application/x-protobuf"
        body = compressed(write_request([({"__name__": "process_cpu_seconds_total", **LABELS}, NOW, 1.0)]))
        answer = await client.post("/api/v1/write", data=body, headers=headers)
        assert answer.status == 403
    assert metrics.metrics() == []


@pytest.mark.parametrize(
    ("path", "body", "media_type", "status"),
    [
        ("/api/v1/write", b"nonsense", "application/x-protobuf", 400),
        ("/api/v1/write", write_request([]), "text/plain", 415),
        ("/api/v1/write", write_request([]), "application/x-protobuf;proto=prometheus.WriteRequest", 200),
        ("/v1/metrics", b"\xff\xff", "application/x-protobuf", 400),
        ("/v1/metrics", b"{", "application/json", 400),
    ],
)
async def test_what_makes_no_sense_is_answered_so(
    path: str, body: bytes, media_type: str, status: int
) -> None:
    bench = Bench(receivers=ServiceMetrics(MetricMap()).receivers)
    async with bench.client() as client:
        answer = await client.post(path, data=body, headers={"Content-Type": media_type})
        assert answer.status == status
        if media_type == "application/json":
            assert await answer.json() == {"code": 3, "message": "no JSON of OTLP metrics"}


async def test_pages_of_metrics_are_fetched() -> None:
    metrics = ServiceMetrics(MetricMap.model_validate({**SETTINGS, "wait": "1s"}))
    bench = Bench(receivers=metrics.receivers)
    served = 0

    async def page(request: web.Request) -> web.Response:
        nonlocal served
        served += 60
        bench.now += 30.0
        assert "openmetrics" in request.headers["Accept"]
        # A host of its own, besides that of the target: two series, not one.
        lines = (f'http_requests_total{{host="{name}"}} {served}\n' for name in "xy")
        return web.Response(text=f"# TYPE http_requests counter\n{''.join(lines)}# EOF\n")

    app = web.Application()
    app.router.add_get("/metrics", page)
    async with TestServer(app) as server:
        labels = (("service", "shop"), ("host", "a"))
        target = ScrapeTarget("shop", str(server.make_url("/metrics")), labels, 0, 0.01, "metrics")
        scraper = Scraper(bench.intake, metrics.fetched, clock=lambda: bench.now)
        scraper.follow([target])
        async with asyncio.timeout(60):
            while served < 60 * 12:
                await asyncio.sleep(0.01)
        await scraper.close()
    found = points(metrics, bench.now)["http_requests.rate"]
    assert (found.service, found.kind, found.unit) == ("shop", "throughput", "{request}/s")
    assert found.values == pytest.approx(4.0)
    bench.intake.close()


async def test_of_two_replicas_one_counts() -> None:
    metrics = ServiceMetrics(MetricMap.model_validate(SETTINGS))
    bench = Bench(receivers=metrics.receivers)
    async with bench.client() as client:
        for step in range(12):
            bench.now = NOW + step * STEP_S
            for replica in "ab":
                labels = {"service": "shop", "cluster": "eu", "__replica__": replica}
                one = ({**labels, "__name__": "http_requests_total"}, bench.now, 150.0 * step)
                headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy"}
                data = compressed(write_request([one]))
                answer = await client.post("/api/v1/write", data=data, headers=headers)
                assert answer.status == 200
    found = points(metrics, bench.now)["http_requests.rate"]
    assert found.values == pytest.approx(10.0)
    assert ("gateway_readings_total", {"outcome": "replica"}, 12) in metrics.metrics()


async def away() -> NoReturn:
    raise BrokerUnavailable("away")


def serve(ready: Callable[[list[str]], None]) -> bool:
    endpoint = service.Endpoint(("127.0.0.1", 0), None, 1024**2)
    serving = service.serve(IntakeRules(), away, endpoint, clock=lambda: NOW, ready=ready)
    return asyncio.run(asyncio.wait_for(serving, 60))


def test_intervals_that_are_complete_are_published_when_a_gateway_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    complete = [Outgoing("metrics", "shop/http_requests.rate", b"{}")]
    offered: list[Outgoing] = []

    def offer(_outbox: service.BufferedOutbox, message: Outgoing, _samples: int) -> None:
        offered.append(message)

    monkeypatch.setattr(service, "PUBLISH_S", 3600.0)
    monkeypatch.setattr(service.BufferedOutbox, "offer", offer)
    monkeypatch.setattr(ServiceMetrics, "complete", lambda *_: complete)
    assert serve(lambda _: os.kill(os.getpid(), signal.SIGTERM))
    assert offered == complete


def test_a_gateway_that_can_publish_no_intervals_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_metrics: ServiceMetrics, _now: float) -> list[Outgoing]:
        raise OverflowError("a mistake of ours")

    monkeypatch.setattr(service, "PUBLISH_S", 0.0)
    monkeypatch.setattr(ServiceMetrics, "complete", broken)
    with pytest.raises(OverflowError, match="a mistake of ours"):
        serve(lambda _: None)


@pytest.mark.parametrize("is_known", [True, False], ids=["taken", "a label that is no symbol"])
async def test_version_2_of_remote_write_is_answered_what_was_written(is_known: bool) -> None:
    """Prometheus takes all that it sent for lost where the answer does not say so."""
    request = REMOTE_WRITE[2]["Request"]()
    request.symbols.extend([b"", b"__name__", b"queue", b"job", b"shop"])
    for number in (4, 4 if is_known else 99):
        series = request.timeseries.add(labels_refs=[1, 2, 3, number])
        series.samples.add(value=3.0, timestamp=round(NOW * 1000))
        series.histograms.add(schema=0, timestamp=round(NOW * 1000))
    body = compressed(request.SerializeToString())
    written: dict[str, str] = {}
    bench = Bench(receivers=ServiceMetrics(MetricMap()).receivers)
    headers = {"Content-Encoding": "snappy", "Content-Type": f"application/x-protobuf;proto={V2_TYPE}"}
    async with bench.client() as client:
        answer = await client.post("/api/v1/write", data=body, headers=headers)
        assert answer.status == 200
        start = "X-Prometheus-Remote-Write-"
        written.update({name: value for name, value in answer.headers.items() if name.startswith(start)})
    count = "2" if is_known else "1"
    assert written == {
        "X-Prometheus-Remote-Write-Samples-Written": count,
        "X-Prometheus-Remote-Write-Histograms-Written": count,
        "X-Prometheus-Remote-Write-Exemplars-Written": "0",
    }


def test_the_log_says_once_which_metric_has_no_rate(caplog: pytest.LogCaptureFixture) -> None:
    metrics = ServiceMetrics(MetricMap())
    receiver = next(receiver for receiver in metrics.receivers if receiver.name == "otlp_metrics")
    for second in range(0, 300, 10):
        request = otlp_request("shop")
        data = add_metric(request, "http_requests_total").sum
        data.is_monotonic, data.aggregation_temporality = True, 2
        add_point(data, NOW + second, NOW - 900, as_int=9000 * (second % 20) + second)
        sent = Request("/v1/metrics", request.SerializeToString(), NOW + second)
        apply = receiver.decode(sent, DecodeSetup()).apply
        assert apply
        apply("")
        metrics.complete(NOW + second)
    lines = [record.message for record in caplog.records]
    assert [line.split(": ")[:2] for line in lines] == [["shop", "http_requests_total"]]
    assert "service.instance.id" in lines[0]
