"""What a worker counts of itself: every name in one place, written to the log."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

from pipeline.model import Profile, Record

logger = logging.getLogger(__name__)

MESSAGES = "messages"  # taken from the input topics and done with
SAMPLES = "samples"  # stack samples in them
PUBLISHED = "published"  # messages put on the output topics
DEAD_LETTERS = "dead_letters"
RETRIES = "store_retries"

NAMES = (MESSAGES, SAMPLES, PUBLISHED, DEAD_LETTERS, RETRIES)

SUMMARY_INTERVAL_S = 60.0


REPEAT_INTERVAL_S = 30.0


class RepeatFilter(logging.Filter):
    """Lets a library say the same thing once in a while: an outage would be 20 lines a second."""

    def __init__(self, *libraries: str) -> None:
        super().__init__()
        self._libraries = libraries
        self._said: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Drop a library's message whose template was logged less than REPEAT_INTERVAL_S before."""
        if record.name.partition(".")[0] not in self._libraries:
            return True
        key = (record.name, str(record.msg))
        if record.created - self._said.get(key, -REPEAT_INTERVAL_S) < REPEAT_INTERVAL_S:
            return False
        self._said[key] = record.created
        return True


class Telemetry:
    """Counters of one stage in this process since the last summary."""

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self._counts: Counter[str] = Counter()

    def batch(self, events: Sequence[Any], records: Sequence[Record], rejected: Sequence[Any]) -> None:
        """Count a batch that is done with."""
        samples = sum(int(r.payload.counts.sum()) for r in records if isinstance(r.payload, Profile))
        self._counts.update({MESSAGES: len(events), SAMPLES: samples, DEAD_LETTERS: len(rejected)})
        logger.debug(
            "stage=%s batch messages=%d samples=%d dead_letters=%d",
            self._stage,
            len(events),
            samples,
            len(rejected),
        )

    def published(self, messages: int, oversized: int) -> None:
        """Count messages that a stage put out, and those that became dead letters for their size."""
        self._counts.update({PUBLISHED: messages, DEAD_LETTERS: oversized})

    def retried(self) -> None:
        """Count a call to a store that was not available."""
        self._counts[RETRIES] += 1

    def summary(self, lag: int | None) -> str:
        """Return one line of everything counted since the last summary, and begin anew.

        ``lag`` is how many messages of the assigned partitions are still to be done; None if not known.
        """
        parts = [f"stage={self._stage}", *(f"{name}={self._counts[name]}" for name in NAMES)]
        if lag is not None:
            parts.append(f"lag={lag}")
        self._counts.clear()
        return " ".join(parts)
