"""Counters of the gateway, and its log, which repeats a line only once in a while."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

from agents.gateway.base import RequestResult
from pipeline.model.clock import Clock
from pipeline.telemetry import metrics as telemetry
from pipeline.telemetry.instruments import counter, histogram, samples_of

log = logging.getLogger(__name__)

REPEAT_S = 30.0
"""Refusals for one reason are logged once in this time: a wrong client would add a line each second."""

REQUEST_BOUNDS_S = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)

TAKEN = "taken"


class GatewayCounts:
    """Counters of one gateway; only its event loop changes them."""

    def __init__(self, clock: Clock, receivers: Sequence[str]) -> None:
        self._clock = clock
        self._requests = counter(telemetry.GATEWAY_REQUESTS, "receiver", "outcome")
        self._skipped = counter(telemetry.GATEWAY_SKIPPED, "receiver", "reason")
        self._samples = counter(telemetry.GATEWAY_SAMPLES, "receiver")
        self._scrapes = counter(telemetry.GATEWAY_SCRAPES, "outcome")
        self._seconds = histogram(telemetry.GATEWAY_S, REQUEST_BOUNDS_S, "receiver")
        self._logged: dict[tuple[str, str], float] = {}
        self._unsaid: Counter[tuple[str, str]] = Counter()
        for receiver in receivers:
            self._seconds.labels(receiver)
            self._requests.labels(receiver, TAKEN)

    def request(self, receiver: str, result: RequestResult, sender: str, took_s: float) -> None:
        """Count a request, and log one that was refused."""
        self._requests.labels(receiver, TAKEN if result.is_taken else result.reason).inc()
        self._seconds.labels(receiver).observe(max(0.0, took_s))
        if not result.is_taken:
            self.say(receiver, result.reason, f"{sender}: refused: {result.text}")
        for skipped in result.skipped:
            self._skipped.labels(receiver, skipped.reason).inc()
            if skipped.is_wrong:
                self.say(receiver, skipped.reason, f"{sender}: left out: {skipped.text}")

    def skip(self, receiver: str, reason: str, parts: int) -> None:
        """Count parts of earlier requests that are left out."""
        if parts:
            self._skipped.labels(receiver, reason).inc(parts)

    def samples(self, receiver: str, samples: int) -> None:
        """Count the parts that were taken."""
        self._samples.labels(receiver).inc(samples)

    def scrape(self, outcome: str) -> None:
        """Count a fetch of a profile, successful or not."""
        self._scrapes.labels(outcome).inc()

    def say(self, receiver: str, reason: str, text: str) -> None:
        """Log a line, unless one of the same receiver and reason was logged a moment ago."""
        key, now = (receiver, reason), self._clock()
        if now - self._logged.get(key, now - REPEAT_S) < REPEAT_S:
            self._unsaid[key] += 1
            return
        self._logged[key] = now
        more = self._unsaid.pop(key, 0)
        log.warning("%s: %s%s", receiver, text, f" (and {more} more since)" if more else "")

    def metrics(self) -> list[telemetry.Sample]:
        """Return everything as samples of Prometheus."""
        return samples_of(self._requests, self._skipped, self._samples, self._scrapes, self._seconds)
