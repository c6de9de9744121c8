"""Report of what was beyond its quota: a few lines in the log once in a while, and totals for metrics."""

from __future__ import annotations

import logging
from collections import Counter

from pipeline.model.clock import Clock

REPORT_S = 60.0
"""How often the log says at most what was beyond its quota."""

_MOST_REPORTED = 20

logger = logging.getLogger(__name__)


class QuotaReport:
    """Says which services were beyond their quotas, and by how much."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._reported = clock()

    def move(self, limited: dict[str, Counter[str]], totals: Counter[str]) -> None:
        """Report what was limited by service and add it to the totals, unless that was done just now."""
        now = self._clock()
        if not limited or now - self._reported < REPORT_S:
            return
        self._reported = now
        for service, what in list(limited.items())[:_MOST_REPORTED]:
            if beyond := " ".join(f"{k}={n}" for k, n in what.items() if k != "repeated_messages"):
                logger.warning("service=%s beyond its quota: %s", service, beyond)
            if again := what["repeated_messages"]:
                logger.info("service=%s: %d messages have come before and are left out", service, again)
        if len(limited) > _MOST_REPORTED:
            logger.warning("%d more services are not counted as they came", len(limited) - _MOST_REPORTED)
        for what in limited.values():
            totals.update(what)
        limited.clear()
