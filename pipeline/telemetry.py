"""Telemetry of a worker: every metric name in one place, for the log and for /metrics."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from pipeline.model import Profile, Record

logger = logging.getLogger(__name__)

MESSAGES = "messages"  # taken from the input topics and done with
SAMPLES = "samples"  # stack samples in them
PUBLISHED = "published"  # messages put on the output topics
DEAD_LETTERS = "dead_letters"
RETRIES = "store_retries"

NAMES = (MESSAGES, SAMPLES, PUBLISHED, DEAD_LETTERS, RETRIES)
"""What a summary in the log has."""

REFUSED = "refused_messages"  # left out because their service is over its quota
REFUSED_SAMPLES = "refused_samples"
FOLDED = "folded_names"  # counted under a name that stands for many
FOLDED_HOSTS = "folded_hosts"
FOLDED_STRATA = "folded_strata"
LATE_HOSTS = "late_hosts"
CLOCKS_AHEAD = "clocks_ahead"
CUT = "cut_names"  # too long: the rest of them is a hash
SHORTENED = "shortened_stacks"  # too deep: frames left out in the middle
REPEATED = "repeated_messages"  # published again: their ids have come before
UNSTABLE = "unstable_names"  # of scans: seen for one process's life only
RENAMED = "renamed_names"  # of scans: with the history of a former name
UNJUDGED = "unjudged_scans"  # whose data did not suffice for all series or some

LIMITED = (
    *(REFUSED, REFUSED_SAMPLES, FOLDED, CUT, SHORTENED, REPEATED, UNSTABLE, RENAMED),
    *(FOLDED_HOSTS, FOLDED_STRATA, LATE_HOSTS, CLOCKS_AHEAD),
)
"""What was not counted as it came; in a summary only if there is any."""

PREFIX = "smidgen_"
Kind = Literal["counter", "gauge", "summary"]

METRICS: Mapping[str, tuple[Kind, str]] = {
    "messages_total": ("counter", "Messages taken from the input topics and done with."),
    "samples_total": ("counter", "Stack samples in them."),
    "published_total": ("counter", "Messages put on the output topics."),
    "dead_letters_total": ("counter", "Messages that could not be used and went to dead-letters."),
    "store_retries_total": ("counter", "Calls to a store that was not available."),
    "batch_seconds": ("summary", "Time from taking a batch to its acknowledgement."),
    "refused_messages_total": ("counter", "Messages left out because their service is over its quota."),
    "refused_samples_total": ("counter", "Samples in them."),
    "folded_names_total": (
        "counter",
        "Names counted under one that stands for many: a service has too many.",
    ),
    "folded_hosts_total": ("counter", "Messages whose host is counted with others of its labels: too many."),
    "folded_strata_total": ("counter", "Messages counted without release and labels: too many of them."),
    "late_hosts_total": ("counter", "Hosts found to be late by habit, or their clocks behind."),
    "clocks_ahead_total": ("counter", "Messages of hosts whose clock is ahead by more than a minute."),
    "cut_names_total": ("counter", "Names that were too long."),
    "shortened_stacks_total": ("counter", "Stacks that were too deep."),
    "repeated_messages_total": ("counter", "Messages left out because one with their id has come before."),
    "unstable_names_total": (
        "counter",
        "Names that scans found to have lived for one process's life only.",
    ),
    "renamed_names_total": (
        "counter",
        "Former names that scans read as part of the series that they became.",
    ),
    "unjudged_scans_total": (
        "counter",
        "Scans in which series could not be judged, by service and reason.",
    ),
    "lag_messages": ("gauge", "Messages of an assigned partition that were not committed yet."),
    "partitions": ("gauge", "Partitions of the input topics that are assigned to this process."),
    "bad_sources": ("gauge", "Sources of a topic that send nothing usable (see dead_letter_limit)."),
    "call_seconds": ("gauge", "How long the call of a stage that is under way has taken; 0 between calls."),
    "ready": ("gauge", "1 if /ready says so."),
    "resident_memory_bytes": ("gauge", "Memory of the process."),
    "open_files": ("gauge", "Files and sockets that the process holds open."),
}
"""Everything on /metrics, without the prefix: what kind it is, and what it means."""

SUMMARY_INTERVAL_S = 60.0
REPEAT_INTERVAL_S = 30.0

Sample = tuple[str, Mapping[str, str], float]
"""Name without the prefix, labels, value."""


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
    """Counters of one stage in this process, since the last summary and in all; threads may share it.

    ``limited`` returns what the stage's own bounds did so far, by names of LIMITED.
    """

    def __init__(self, stage: str, limited: Callable[[], Mapping[str, int]] = dict) -> None:
        self._stage = stage
        self._limited = limited
        self._reported: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._in_all: Counter[str] = Counter(dict.fromkeys(NAMES, 0))
        self._batches = 0
        self._batches_s = 0.0
        self._lock = threading.Lock()

    def batch(
        self, events: Sequence[Any], records: Sequence[Record], rejected: Sequence[Any], took_s: float = 0.0
    ) -> None:
        """Count a batch that is done with."""
        samples = sum(int(r.payload.counts.sum()) for r in records if isinstance(r.payload, Profile))
        self._add({MESSAGES: len(events), SAMPLES: samples, DEAD_LETTERS: len(rejected)})
        with self._lock:
            self._batches += 1
            self._batches_s += took_s
        logger.debug(
            "stage=%s batch messages=%d samples=%d dead_letters=%d",
            self._stage,
            len(events),
            samples,
            len(rejected),
            extra={"stage": self._stage, "messages": len(events), "samples": samples},
        )

    def published(self, messages: int, oversized: int) -> None:
        """Count messages that a stage put out, and those that became dead letters for their size."""
        self._add({PUBLISHED: messages, DEAD_LETTERS: oversized})

    def retried(self) -> None:
        """Count a call to a store that was not available."""
        self._add({RETRIES: 1})

    def summary(self, lag: int | None) -> str:
        """Return one line of everything counted since the last summary, and begin anew.

        ``lag`` is how many messages of the assigned partitions are still to be done; None if not known.
        """
        return as_text(self.summary_fields(lag))

    def summary_fields(self, lag: int | None) -> dict[str, Any]:
        """Return what ``summary`` says, by name, and begin anew."""
        with self._lock:
            fields: dict[str, Any] = {"stage": self._stage, **{name: self._counts[name] for name in NAMES}}
            self._counts.clear()
        limited = Counter(self._limited())
        fields |= {
            name: limited[name] - self._reported[name]
            for name in LIMITED
            if limited[name] > self._reported[name]
        }
        self._reported = limited
        if lag is not None:
            fields["lag"] = lag
        return fields

    def samples(self) -> list[Sample]:
        """Return everything counted so far, as METRICS names it."""
        stage = {"stage": self._stage}
        with self._lock:
            counted: list[Sample] = [(f"{name}_total", stage, self._in_all[name]) for name in NAMES]
            counted += [
                ("batch_seconds_sum", stage, self._batches_s),
                ("batch_seconds_count", stage, self._batches),
            ]
        limited = self._limited()
        return counted + [(f"{name}_total", stage, limited[name]) for name in LIMITED if name in limited]

    def _add(self, counts: Mapping[str, int]) -> None:
        with self._lock:
            self._counts.update(counts)
            self._in_all.update(counts)


def as_text(fields: Mapping[str, Any]) -> str:
    """Write fields as ``name=value``, as a summary does."""
    return " ".join(f"{name}={value}" for name, value in fields.items())


def exposition(samples: Iterable[Sample]) -> str:
    """Write samples in Prometheus' text format, version 0.0.4.

    Raises:
        KeyError: a sample's name is not in METRICS.
    """
    lines: dict[str, list[str]] = {}
    for name, labels, value in samples:
        family = name.removesuffix("_sum").removesuffix("_count")
        if family not in METRICS:
            raise KeyError(name)
        inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        braces = f"{{{inside}}}" if inside else ""
        lines.setdefault(family, []).append(f"{PREFIX}{name}{braces} {value:.15g}")
    out: list[str] = []
    for family in METRICS:
        if family in lines:
            kind, text = METRICS[family]
            out += [f"# HELP {PREFIX}{family} {text}", f"# TYPE {PREFIX}{family} {kind}", *lines[family]]
    return "\n".join(out) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
