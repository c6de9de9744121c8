"""Service-level metrics: remote write, OTLP metrics and pages that are fetched, all into one conversion.

Requests add to intervals, and ``publish`` sends complete ones: a request's answer says that its readings
are taken, not that the broker has their points.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from agents.gateway.base import (
    JSON,
    PROTOBUF,
    AnswerBody,
    Decoded,
    DecodeSetup,
    PushProtocol,
    Refusal,
    Request,
    RequestResult,
    SkippedPart,
)
from agents.gateway.otlp_profiles import grpc_status, json_status, partial_success
from agents.metrics import (
    MetricMap,
    Readings,
    Replicas,
    SeriesReading,
    read_exposition,
    read_otlp_json,
    read_otlp_metrics,
    read_remote_write,
)
from agents.metrics.conversion import Conversion
from agents.metrics.reading import Family
from agents.metrics.remote_write import V2_TYPE
from pipeline.messages.measurements import encode_metric_points
from pipeline.model import Outgoing
from pipeline.model.errors import InvalidMessage
from pipeline.telemetry.metrics import GATEWAY_READINGS, Sample

log = logging.getLogger(__name__)

MAX_FAMILIES = 100_000
"""Most metrics whose metadata of remote write 1.0 is remembered."""


class ServiceMetrics:
    """The receivers of metrics, and the families and the conversion that they share."""

    def __init__(self, metric_map: MetricMap) -> None:
        self._map = metric_map
        self._conversion = Conversion(metric_map)
        self._replicas = Replicas()
        self._families: dict[str, Family] = {}
        self.fetched = PushProtocol("metrics_scrape", (), self._decode_page)
        self.receivers: tuple[PushProtocol, ...] = (
            PushProtocol("remote_write", ("/api/v1/write",), self._decode_write, _reply_write),
            PushProtocol(
                "otlp_metrics",
                ("/v1/metrics", "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"),
                self._decode_otlp,
                _reply_otlp,
                is_grpc=True,
            ),
        )

    def complete(self, now: float) -> list[Outgoing]:
        """Return messages of the intervals that are complete, and log which metrics have no rate."""
        for note in self._conversion.notes():
            log.warning("%s", note)
        return [
            Outgoing("metrics", f"{points.service}/{points.metric}", encode_metric_points(points))
            for points in self._conversion.close(now)
        ]

    def metrics(self) -> list[Sample]:
        """Return the counts of readings by outcome."""
        counted = self._conversion.counts.copy()
        counted.update(self._replicas.counts)
        return [(GATEWAY_READINGS, {"outcome": outcome}, count) for outcome, count in counted.items()]

    def _decode_write(self, request: Request, _setup: DecodeSetup) -> Decoded:
        if request.media_type not in ("", *PROTOBUF):
            raise Refusal(415, "content_type", f"Content-Type: should be {PROTOBUF[0]}")
        if len(self._families) > MAX_FAMILIES:
            self._families.clear()
        content_type = request.headers.get("content-type", "")
        readings = read_remote_write(request.body, self._families, content_type=content_type)
        decoded = self._decoded(readings, request, self._replicas)
        return replace(decoded, headers=_written(readings)) if V2_TYPE in content_type else decoded

    def _decode_otlp(self, request: Request, _setup: DecodeSetup) -> Decoded:
        read = read_otlp_json if request.media_type == JSON else read_otlp_metrics
        return self._decoded(read(request.body), request)

    def _decode_page(self, request: Request, _setup: DecodeSetup) -> Decoded:
        """Read a page that was fetched; the query of the request are the target's labels."""
        try:
            text = request.body.decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidMessage("no UTF-8 text") from None
        openmetrics = request.media_type == "application/openmetrics-text"
        page = read_exposition(text, request.now, openmetrics=openmetrics)
        target = {**request.query, "instance": request.query.get("host", request.peer)}
        labelled = tuple(_labelled(reading, target) for reading in page.readings)
        return self._decoded(Readings(labelled, page.invalid, page.first_invalid), request)

    def _decoded(self, every: Readings, request: Request, replicas: Replicas | None = None) -> Decoded:
        """Return readings to be converted; invalid ones make the request wrong if it has no others."""
        skipped: tuple[SkippedPart, ...] = ()
        if every.invalid:
            text = f"{every.first_invalid} ({every.invalid} in all)"
            skipped = (SkippedPart("malformed", text, is_wrong=not every.readings),)
        services = {self._map.service_of(dict(reading.labels)) for reading in every.readings} - {""}

        def take(client: str) -> None:
            readings = replicas.admit(every.readings, client, request.now) if replicas else every.readings
            self._conversion.take(readings, request.now)

        return Decoded(
            skipped=skipped,
            services=frozenset(services),
            apply=take,
        )


def _labelled(reading: SeriesReading, target: Mapping[str, str]) -> SeriesReading:
    """Return a reading with its target's labels; its own label of the same name becomes ``exported_NAME``."""
    own = {f"exported_{name}" if name in target else name: value for name, value in reading.labels}
    return replace(reading, labels=tuple(sorted({**own, **target}.items())))


def _written(readings: Readings) -> Mapping[str, str]:
    """Return the headers that version 2.0 requires; without them, senders assume that nothing was written."""
    written = {"Samples": readings.samples, "Histograms": readings.histograms, "Exemplars": 0}
    return {f"X-Prometheus-Remote-Write-{name}-Written": str(count) for name, count in written.items()}


def _reply_write(_request: Request, result: RequestResult) -> AnswerBody:
    """Answer an empty body if the request was taken, as Prometheus expects, else one line."""
    return AnswerBody(b"" if result.is_taken else result.text.encode() + b"\n")


def _reply_otlp(request: Request, result: RequestResult) -> AnswerBody:
    """Answer the number of rejected points, or the status of gRPC with the reason of a refusal."""
    if request.media_type == JSON:
        return AnswerBody(b"{}" if result.is_taken else json_status(result), JSON)
    if not result.is_taken:
        return grpc_status(result)
    return partial_success(result.skipped)
