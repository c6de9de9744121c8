"""Telemetry of a worker: every metric name in one place, for the log and for /metrics."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric

from pipeline.model import MetricPoints, Profile, Record, RequestCounts, Scan
from pipeline.model.clock import Clock, system_clock
from pipeline.model.units import DAY_S, HOUR_S, MINUTE_S
from pipeline.telemetry.instruments import LabelBound, histogram, samples_of
from pipeline.telemetry.instruments import Sample as Sample

logger = logging.getLogger(__name__)

MESSAGES = "messages"  # taken from the input topics and done with
SAMPLES = "samples"  # stack samples in them
PUBLISHED = "published"  # messages put on the output topics
DEAD_LETTERS = "dead_letters"
LOST = "lost_messages"
LEFT_OUT = "left_out_messages"
RETRIES = "store_retries"

NAMES = (MESSAGES, SAMPLES, PUBLISHED, DEAD_LETTERS, LEFT_OUT, LOST, RETRIES)
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
SKIPPED = "skipped_scans"  # too far back to be caught up with
LATE_DATA = "late_data"  # progress with data of before the last scan
UNSEEN_DATA = "unseen_data"  # progress with data that no later scan looks at for a change
UNJUDGED = "unjudged_scans"  # whose data did not suffice for all series or some

_OF_HOSTS = (FOLDED_HOSTS, FOLDED_STRATA, LATE_HOSTS, CLOCKS_AHEAD)
LIMITED_INPUT = (REFUSED, REFUSED_SAMPLES, FOLDED, CUT, SHORTENED, REPEATED, *_OF_HOSTS)
"""What aggregate did not count as it came."""

LIMITED_SCANS = (UNSTABLE, RENAMED, SKIPPED, LATE_DATA, UNSEEN_DATA)
"""What detect did not scan as it came."""

LIMITED_TRIALS = (REFUSED,)
"""What judge did not take as it came."""

LIMITED = (*LIMITED_INPUT, *LIMITED_SCANS)
"""What was not counted as it came; in a summary only if there is any."""

BATCH_S = "batch_seconds"
DATA_DELAY_S = "data_delay_seconds"
SCANS = "scans_total"
SCANNED_SERIES = "scanned_series_total"
SCAN_S = "scan_seconds"
SCAN_DELAY_S = "scan_delay_seconds"
SCAN_INTERVAL_S = "scan_interval_seconds"
SCANNED_UNTIL_S = "scanned_until_timestamp_seconds"
SERVICES = "services"
SILENT_SERVICES = "silent_services"
SILENT_SINCE_S = "silent_service_timestamp_seconds"
CANDIDATES = "candidates_total"
EVENTS = "events_total"
EVENT_DELAY_S = "event_delay_seconds"
ALERTS = "alerts_total"
ALERT_RULES = "alert_rules_total"
ALERTS_WAITING = "alerts_waiting"
ALERT_DELAY_S = "alert_delay_seconds"
REPLIES = "replies_total"
TOP_FUNCTION_GCPU = "top_function_gcpu"
TRIAL_VERDICTS = "trial_verdicts_total"
RELEASE_LOOKS = "release_looks_total"
AGENT_PROCESSES = "agent_processes"
AGENT_SAMPLES = "agent_samples_total"
AGENT_RATE_HZ = "agent_rate_hz"
AGENT_COST = "agent_cost_ratio"
AGENT_BUDGET = "agent_budget_ratio"
AGENT_MESSAGES = "agent_messages_total"
AGENT_WAITING = "agent_waiting_messages"
AGENT_SPOOL = "agent_spool_bytes"
AGENT_REQUESTS = "agent_requests_total"
AGENT_OMISSIONS = "agent_omissions_total"
GATEWAY_REQUESTS = "gateway_requests_total"
GATEWAY_S = "gateway_request_seconds"
GATEWAY_SAMPLES = "gateway_samples_total"
GATEWAY_SKIPPED = "gateway_skipped_total"
GATEWAY_SCRAPES = "gateway_scrapes_total"
GATEWAY_READINGS = "gateway_readings_total"
GATEWAY_WAITING = "gateway_waiting_messages"
GATEWAY_WAITING_BYTES = "gateway_waiting_bytes"
GATEWAY_SPOOL = "gateway_spool_bytes"
TASK_FAILURES = "task_failures_total"

PREFIX = "smidgen_"
Kind = Literal["counter", "gauge", "histogram"]

METRICS: Mapping[str, tuple[Kind, str]] = {
    "messages_total": ("counter", "Messages taken from the input topics and done with."),
    "samples_total": ("counter", "Stack samples in them."),
    "published_total": ("counter", "Messages put on the output topics."),
    "dead_letters_total": ("counter", "Messages that could not be used and went to dead-letters."),
    "left_out_messages_total": (
        "counter",
        "Messages of them for which the store refused the memory or the time that they take.",
    ),
    "lost_messages_total": (
        "counter",
        "Messages that retention deleted before they were read.",
    ),
    "store_retries_total": ("counter", "Calls to a store that was not available."),
    BATCH_S: ("histogram", "Time from taking a batch to its acknowledgement."),
    DATA_DELAY_S: ("histogram", "Time from the end of a message's samples or points to their being counted."),
    SCANS: ("counter", "Scans that were made and published."),
    SCANNED_SERIES: ("counter", "Series in them."),
    SCAN_S: ("histogram", "Time that detect took for a scan, its reads from the store among it."),
    SCAN_DELAY_S: ("histogram", "Time from the end of a scan's windows to the stage being done with it."),
    SCAN_INTERVAL_S: ("gauge", "Event time between two scans of a service (rerun_interval)."),
    SCANNED_UNTIL_S: (
        "gauge",
        "Event time up to which the live service furthest behind is scanned.",
    ),
    SERVICES: ("gauge", "Services of which something was counted within a day."),
    SILENT_SERVICES: ("gauge", "Services of them of which nothing was counted for 10 minutes."),
    SILENT_SINCE_S: ("gauge", "When something of a silent service was counted last; 100 services at most."),
    CANDIDATES: ("counter", "Candidates of scans, by the step that dropped them, or ``reported``."),
    EVENTS: ("counter", "Events published, by type."),
    EVENT_DELAY_S: ("histogram", "Time from a regression's change time to its detected event."),
    TRIAL_VERDICTS: ("counter", "Verdicts on trials published, by decision."),
    RELEASE_LOOKS: ("counter", "Comparisons of a new release with the one before, by what came of them."),
    ALERTS: ("counter", "Messages to targets, by what became of them."),
    ALERT_RULES: ("counter", "Events that a rule of alerts was about."),
    ALERTS_WAITING: (
        "gauge",
        "Alerts that wait: due, quiet (for their hour) or late (the target fails).",
    ),
    ALERT_DELAY_S: ("histogram", "Time from when an alert was due to its target's taking it."),
    TOP_FUNCTION_GCPU: (
        "gauge",
        "Share of a release's samples of an hour in which a function runs itself; the 20 largest.",
    ),
    REPLIES: ("counter", "Replies to alerts, by what became of them."),
    AGENT_PROCESSES: ("gauge", "Processes of a host by what the agent does with them."),
    AGENT_SAMPLES: ("counter", "Stack samples that the agent took."),
    AGENT_RATE_HZ: ("gauge", "Samples a second that the agent takes of a service's processes."),
    AGENT_COST: ("gauge", "Share of the host's CPU that the agent and its kernels take."),
    AGENT_BUDGET: ("gauge", "Share of the host's CPU that they may take."),
    AGENT_MESSAGES: ("counter", "Messages of the agent, by what became of them."),
    AGENT_WAITING: ("gauge", "Messages of the agent that wait for the broker, in memory and in its spool."),
    AGENT_SPOOL: ("gauge", "Bytes in the agent's spool."),
    AGENT_REQUESTS: ("counter", "Requests of a log that the agent counted."),
    AGENT_OMISSIONS: ("counter", "Requests and lines of a log that it did not count as what they are."),
    GATEWAY_REQUESTS: ("counter", "Requests to the gateway, by receiver and what became of them."),
    GATEWAY_S: ("histogram", "Time that the gateway took for a request."),
    GATEWAY_SAMPLES: ("counter", "Stack samples and points in what the gateway took."),
    GATEWAY_SKIPPED: ("counter", "Parts of requests that the gateway did not take, by receiver and reason."),
    GATEWAY_SCRAPES: ("counter", "Profiles and pages of metrics that were to be fetched, by outcome."),
    GATEWAY_READINGS: ("counter", "Readings of service-level metrics, by what became of them."),
    GATEWAY_WAITING: ("gauge", "Messages of the gateway that wait for the broker."),
    GATEWAY_WAITING_BYTES: ("gauge", "Bytes of them."),
    GATEWAY_SPOOL: ("gauge", "Bytes in the gateway's spool."),
    TASK_FAILURES: ("counter", "Failures of the process's background tasks, which start again."),
    "refused_messages_total": ("counter", "Messages left out because their service is over its quota."),
    "refused_samples_total": ("counter", "Samples in them."),
    "folded_names_total": (
        "counter",
        "Names counted under one that stands for many: a service has too many.",
    ),
    "folded_hosts_total": ("counter", "Messages whose host is counted with others of its labels: too many."),
    "folded_strata_total": ("counter", "Messages counted without release and labels: too many of them."),
    "late_hosts_total": ("counter", "Hosts found to be late by habit, or their clocks behind."),
    "skipped_scans_total": (
        "counter",
        "Scans left out because more than 1,000 of a workload were due at once.",
    ),
    "late_data_total": (
        "counter",
        "Batches of a service and partition with data from before its last scan: later scans look at them.",
    ),
    "unseen_data_total": (
        "counter",
        "Batches of them with data so old that no later scan looks for a change in them.",
    ),
    "clocks_ahead_total": ("counter", "Messages of hosts whose clock is ahead by more than a minute."),
    "cut_names_total": ("counter", "Names that were too long."),
    "shortened_stacks_total": ("counter", "Stacks that were too deep."),
    "repeated_messages_total": ("counter", "Messages left out because one with their id has come before."),
    "unstable_names_total": ("counter", "Names that scans found to have lived for one process's life only."),
    "renamed_names_total": (
        "counter",
        "Former names that scans read as part of the series that they became.",
    ),
    "unjudged_scans_total": ("counter", "Scans in which series could not be judged, by service and reason."),
    "lag_messages": ("gauge", "Messages of an assigned partition that were not committed yet."),
    "partitions": ("gauge", "Partitions of the input topics that are assigned to this process."),
    "bad_sources": ("gauge", "Sources of a topic that send nothing usable (see dead_letter_limit)."),
    "call_seconds": ("gauge", "How long the call of a stage that is under way has taken; 0 between calls."),
    "ready": ("gauge", "1 if /ready says so."),
    "resident_memory_bytes": ("gauge", "Memory of the process."),
    "open_files": ("gauge", "Files and sockets that the process holds open."),
    "cpu_seconds_total": ("counter", "CPU time of the process, user and system."),
    "start_timestamp_seconds": ("gauge", "When the process began to serve this page."),
    "build_info": ("gauge", "1; the label says the version."),
}
"""Everything on /metrics, without the prefix: what kind it is, and what it means."""

SUMMARY_INTERVAL_S = 60.0
REPEAT_INTERVAL_S = 30.0

BATCH_BOUNDS_S = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 900)
"""A batch waits for 120 s of the store at most, and a call hangs after 900 s."""

SCAN_BOUNDS_S = (0.1, 0.3, 1, 3, 10, 30, 60, 120, 300, 600, 900)

DELAY_BOUNDS_S = (
    *(1, 3, 10, 30, MINUTE_S, 2 * MINUTE_S, 5 * MINUTE_S, 10 * MINUTE_S, 30 * MINUTE_S),
    *(HOUR_S, 3 * HOUR_S, 6 * HOUR_S, DAY_S),
)
"""From the interval of an agent to the retention of ``profiles``."""

EVENT_BOUNDS_S = (
    *(10 * MINUTE_S, 30 * MINUTE_S, HOUR_S, 2 * HOUR_S, 4 * HOUR_S, 8 * HOUR_S, 12 * HOUR_S),
    *(DAY_S, 2 * DAY_S, 4 * DAY_S, 8 * DAY_S, 16 * DAY_S),
)
"""From short analysis windows to the span of slow rises."""

MOST_WORKLOADS = 50
"""Workloads that are shown by name: scans say theirs themselves."""


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

    ``limited`` returns what the stage's own bounds did so far, by names of LIMITED. ``clock`` says how old
    data are.
    """

    def __init__(
        self, stage: str, limited: Callable[[], Mapping[str, int]] = dict, clock: Clock = system_clock
    ) -> None:
        self._stage = stage
        self._clock = clock
        self._limited = limited
        self._reported: Counter[str] = Counter()
        self._counts: Counter[str] = Counter(dict.fromkeys(NAMES, 0))
        self._batches = histogram(BATCH_S, BATCH_BOUNDS_S, "stage")
        self._batches.labels(stage)
        self._data_delays = histogram(DATA_DELAY_S, DELAY_BOUNDS_S, "stage", "topic")
        self._scan_delays = histogram(SCAN_DELAY_S, DELAY_BOUNDS_S, "stage", "workload")
        self._workloads = LabelBound(MOST_WORKLOADS)
        self._lock = threading.Lock()

    def batch(
        self, events: Sequence[Any], records: Sequence[Record], rejected: Sequence[Any], took_s: float = 0.0
    ) -> None:
        """Count a batch that is done with."""
        samples = sum(int(r.payload.counts.sum()) for r in records if isinstance(r.payload, Profile))
        self._add({MESSAGES: len(events), SAMPLES: samples, DEAD_LETTERS: len(rejected)})
        self._batches.labels(self._stage).observe(took_s)
        self._note_delays(records)
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

    def lost(self, messages: int) -> None:
        """Count messages that were gone before they were read."""
        self._add({LOST: messages})

    def left_out(self, messages: int) -> None:
        """Count messages that became dead letters since the store refused what they take."""
        self._add({DEAD_LETTERS: messages, LEFT_OUT: messages})

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
            counted = self._counts + Counter(self._limited())
        new = counted - self._reported
        self._reported = counted
        fields: dict[str, Any] = {"stage": self._stage, **{name: new[name] for name in NAMES}}
        fields |= {name: new[name] for name in LIMITED if name in new}
        if lag is not None:
            fields["lag"] = lag
        return fields

    def samples(self) -> list[Sample]:
        """Return everything counted so far, as METRICS names it."""
        stage = {"stage": self._stage}
        with self._lock:
            counted: list[Sample] = [(f"{name}_total", stage, self._counts[name]) for name in NAMES]
        limited = self._limited()
        counted += [(f"{name}_total", stage, limited[name]) for name in LIMITED if name in limited]
        return counted + samples_of(self._batches, self._data_delays, self._scan_delays)

    def _note_delays(self, records: Sequence[Record]) -> None:
        """Note how old what a batch brought is, by the event time at which it was complete."""
        now = self._clock()
        for record in records:
            match record.payload:
                case Profile() | RequestCounts() as counts:
                    end, delays = counts.end, self._data_delays.labels(self._stage, record.topic)
                case MetricPoints() as points:
                    end = float(points.timestamps.max())
                    delays = self._data_delays.labels(self._stage, record.topic)
                case Scan() as scan:
                    end = scan.end
                    delays = self._scan_delays.labels(self._stage, self._workloads.of(scan.workload))
                case _:
                    continue
            delays.observe(max(0.0, now - end))  # below 0 only if clocks differ

    def _add(self, counts: Mapping[str, int]) -> None:
        with self._lock:
            self._counts.update(counts)


def as_text(fields: Mapping[str, Any]) -> str:
    """Write fields as ``name=value``, as a summary does."""
    return " ".join(f"{name}={value}" for name, value in fields.items())


@dataclass(frozen=True, slots=True)
class _Page:
    """Families of metrics as prometheus-client writes them."""

    families: Sequence[Metric]

    def collect(self) -> Sequence[Metric]:
        return self.families


def exposition(samples: Iterable[Sample]) -> str:
    """Write samples in Prometheus' text format, version 0.0.4.

    Raises:
        KeyError: a sample's name is not in METRICS.
    """
    families = {
        name: Metric(PREFIX + name.removesuffix("_total"), text, kind)
        for name, (kind, text) in METRICS.items()
    }
    for name, labels, value in samples:
        family = name.removesuffix("_sum").removesuffix("_count").removesuffix("_bucket")
        families[family].add_sample(PREFIX + name, dict(labels), value)
    return generate_latest(_Page([family for family in families.values() if family.samples])).decode()
