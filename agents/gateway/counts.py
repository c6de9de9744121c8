"""Counters of the gateway, and its log, which repeats a line only once in a while."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence

from agents.gateway.base import Result
from pipeline.model.clock import Clock
from pipeline.telemetry import metrics as telemetry
from pipeline.telemetry.instruments import Histogram

log = logging.getLogger(__name__)

REPEAT_S = 30.0
"""Refusals for one reason are logged once in this time: a wrong client would add a line each second."""

REQUEST_BOUNDS_S = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)

TAKEN = "taken"


class Counts:
    """Counters of one gateway; only its event loop changes them."""

    def __init__(self, clock: Clock, receivers: Sequence[str]) -> None:
        self._clock = clock
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._seconds = Histogram(telemetry.GATEWAY_S, REQUEST_BOUNDS_S, ["receiver"])
        self._logged: dict[tuple[str, str], float] = {}
        self._unsaid: Counter[tuple[str, str]] = Counter()
        for receiver in receivers:
            self._seconds.show(receiver)
            self._counts[telemetry.GATEWAY_REQUESTS, receiver, TAKEN] = 0

    def request(self, receiver: str, result: Result, sender: str, took_s: float) -> None:
        """Count a request, and log one that was refused."""
        reason = TAKEN if result.is_taken else result.reason
        self._counts[telemetry.GATEWAY_REQUESTS, receiver, reason] += 1
        self._seconds.observe(took_s, receiver)
        if not result.is_taken:
            self.say(receiver, result.reason, f"{sender}: refused: {result.text}")
        for skipped in result.skipped:
            self._counts[telemetry.GATEWAY_SKIPPED, receiver, skipped.reason] += 1
            if skipped.is_wrong:
                self.say(receiver, skipped.reason, f"{sender}: left out: {skipped.text}")

    def samples(self, receiver: str, samples: int) -> None:
        """Count the parts that were taken."""
        self._counts[telemetry.GATEWAY_SAMPLES, receiver, ""] += samples

    def scrape(self, outcome: str) -> None:
        """Count a fetch of a profile, successful or not."""
        self._counts[telemetry.GATEWAY_SCRAPES, "", outcome] += 1

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
        samples: list[telemetry.Sample] = [
            (name, _labels(name, receiver, reason), count)
            for (name, receiver, reason), count in sorted(self._counts.items())
        ]
        return samples + self._seconds.samples()


def _labels(name: str, receiver: str, reason: str) -> Mapping[str, str]:
    if name == telemetry.GATEWAY_SAMPLES:
        return {"receiver": receiver}
    if name == telemetry.GATEWAY_SCRAPES:
        return {"outcome": reason}
    return {"receiver": receiver, "outcome" if name == telemetry.GATEWAY_REQUESTS else "reason": reason}
