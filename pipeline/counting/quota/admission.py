"""Admission of messages within quotas: what exceeds a quota is refused or folded, and counted.

Every decision depends on the log up to the message alone: not on batch boundaries, the time of day, or the
process that reads it. So a message that is repeated after a crash gets the same decision.

    too many messages or stacks in a period     the message is refused
    a service too many in a partition           its messages are refused, under the service ``(other)``
    a name too many on a day                    it becomes ``(other)``; known names and totals are unharmed
    a name too long                             it is cut, and ends in a hash of the whole
    a message whose id has come before          it is left out
    a host too many on a day                    its samples are counted by release and labels, without host
    a release or label too many on a day        its samples belong to no stratum
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pipeline.counting.quota.cardinality import KnownNames
from pipeline.counting.quota.folding import folded_types
from pipeline.counting.quota.limits import PERIOD_S, Quotas, Usage
from pipeline.model import Annotation, MetricPoints, Profile, Record, RequestCounts
from pipeline.model.frames import MAX_LABEL, OTHER, cut_name, element
from pipeline.model.units import DAY_S

MAX_USAGE_DAYS = 2
"""Days per partition whose usage stays in memory, for each service and five minutes."""

_SERVICES = ""
"""Stands in for the service where the names are names of services."""

_IDS = "/ids"
"""Suffix of the log whose names are the ids of a partition's messages."""

_HOSTS = "/hosts"
_STRATA = "/strata"
"""Suffixes of the logs of hosts, and of combinations of release and labels."""

_KINDS: Mapping[type, tuple[str, ...]] = {
    Profile: ("", _HOSTS, _STRATA),
    MetricPoints: ("",),
    RequestCounts: ("", _STRATA),
}
"""Suffixes of the logs of names that a message of each type uses."""

Counted = Profile | MetricPoints | RequestCounts
"""The payloads that are counted."""

_TopicPartition = tuple[str, int]  # topic, partition


@dataclass(frozen=True, slots=True)
class Refused:
    """A message beyond a quota, reduced to what its count needs."""

    service: str
    start: float
    end: float
    samples: int


@dataclass(frozen=True, slots=True)
class MissingUsage:
    """Services whose usage on a day, in one partition, has not been loaded from the store."""

    topic: str
    partition: int
    day: float  # its start, epoch seconds
    services: tuple[str, ...]


@dataclass(slots=True)
class _Usages:
    """Usage of a partition on a day, as ``totals`` counted it; complete for the services that are loaded."""

    loaded: set[str] = field(default_factory=set)
    by_period: dict[tuple[str, float], Usage] = field(default_factory=dict)


class Admission:
    """Decides on messages in the order of their partitions.

    Stored names and usage must be loaded first: see ``missing_names`` and ``missing_usage``.
    """

    def __init__(self, streams: Mapping[str, str], quotas: Quotas, window_s: float) -> None:
        self._streams = streams  # by topic, the name of its log
        self._quotas = quotas
        self._window_s = window_s  # of totals, by whose windows the store counts what was used
        self._names: dict[tuple[_TopicPartition, str], KnownNames] = {}  # a partition's names, and its ids
        self._usage: dict[_TopicPartition, dict[float, _Usages]] = {}  # by day
        self.limited: dict[str, Counter[str]] = {}
        """Number of refusals and foldings by service and kind; whoever reports them resets it."""

    def forget(self, topic: str, partitions: Sequence[int]) -> None:
        """Forget the names and usage of partitions: another process may have handled them meanwhile."""
        for partition in partitions:
            for kind in ("", _IDS, _HOSTS, _STRATA):
                self._names.pop(((topic, partition), kind), None)
            self._usage.pop((topic, partition), None)

    def missing_names(self, records: Sequence[Record]) -> list[tuple[str, float]]:
        """Return the logs and days of names that have to be learnt before these records are decided on."""
        days: dict[KnownNames, set[float]] = {}
        for record in records:
            payload: Counted = record.payload
            day = _day_of(_start_of(payload))
            for kind in _KINDS[type(payload)]:
                days.setdefault(self._known(record, kind), set()).update((day, day - DAY_S))
            if _id_of(record):
                days.setdefault(self._known(record, _IDS), set()).add(day)
        return [(names.log, day) for names, needed_days in days.items() for day in names.missing(needed_days)]

    def learn_names(self, log: str, day: float, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add the stored rows of ``names`` of a log and day."""
        next(names for names in self._names.values() if names.log == log).learn(day, rows)

    def missing_usage(self, records: Sequence[Record]) -> list[MissingUsage]:
        """Return the usage that has to be learnt before these profiles are decided on."""
        missing: dict[tuple[_TopicPartition, float], set[str]] = {}
        for record in records:
            topic_partition, day = (record.topic, record.partition), _day_of(self._window(record.payload))
            usages = self._usage.get(topic_partition, {}).get(day)
            if usages is None or record.payload.service not in usages.loaded:
                missing.setdefault((topic_partition, day), set()).add(record.payload.service)
        return [
            MissingUsage(*topic_partition, day, tuple(sorted(services)))
            for (topic_partition, day), services in missing.items()
        ]

    def learn_usage(self, missing: MissingUsage, used: Mapping[tuple[str, float], Usage]) -> None:
        """Add the usage that the store counted, by service and start of the period."""
        days = self._usage.setdefault((missing.topic, missing.partition), {})
        usages = days.setdefault(missing.day, _Usages())
        usages.by_period.update(used)
        usages.loaded.update(missing.services)

    def profiles(self, records: Sequence[Record]) -> list[Record]:
        """Return profiles with their admitted names, Refused instead of refused ones, without copies.

        The records must be those that ``totals`` does not cover yet. Until ``use`` is called with them,
        the same call returns the same answer.
        """
        self._drop_usage_but(records)
        spent: dict[tuple[_TopicPartition, str, float], Usage] = {}
        decided = []
        for record in records:
            profile: Profile = record.payload
            payload: Profile | Refused
            if self._repeats(record):
                self._note(profile.service, "repeated_messages")
                continue
            if not self.knows(record):
                payload = self._refused(profile, OTHER)
            elif not self._spend(record, spent):
                payload = self._refused(profile, profile.service)
            else:
                payload = self._placed(record, self._named(record))
                self._note_id(record)
            decided.append(record if payload is profile else replace(record, payload=payload))
        return decided

    def metrics(self, records: Sequence[Record]) -> list[Record]:
        """Return records of metric points, Refused instead of those whose metric exceeds the quota."""
        decided = []
        for record in records:
            points: MetricPoints = record.payload
            start, end = _start_of(points), float(points.timestamps.max())
            if self._repeats(record):
                self._note(points.service, "repeated_messages")
                continue
            knows = self.knows(record)
            service = points.service if knows else OTHER
            if knows and self._admits(record, service, start, [points.metric])[0]:
                self._note_id(record)
                decided.append(record)
                continue
            self._note(service, "refused_messages")
            decided.append(replace(record, payload=Refused(service, start, end, len(points.values))))
        return decided

    def requests(self, records: Sequence[Record]) -> list[Record]:
        """Return records of requests; types, releases and services beyond a quota are folded into one."""
        decided = []
        for record in records:
            counts: RequestCounts = record.payload
            if self._repeats(record):
                self._note(counts.service, "repeated_messages")
                continue
            kept_types: set[str] = set()
            if self.knows(record):
                types = [request_type.type for request_type in counts.types]
                admitted = self._admits(record, counts.service, counts.start, types)
                kept_types = {name for name, is_admitted in zip(types, admitted, strict=True) if is_admitted}
                if len(kept_types) < len(types):
                    self._note(counts.service, "folded_names", len(types) - len(kept_types))
                if not self._admits(record, counts.service, counts.start, [counts.release], _STRATA)[0]:
                    self._note(counts.service, "folded_strata")
                    counts = replace(counts, release="")
                self._note_id(record)
            else:
                self._note(OTHER, "refused_messages")
                counts = replace(counts, service=OTHER, release="")
            counts = replace(counts, types=folded_types(counts.types, kept_types))
            decided.append(replace(record, payload=counts))
        return decided

    def knows(self, record: Record) -> bool:
        """Return whether the service of a message is within the quota of its partition."""
        payload: Counted = record.payload
        return self._admits(record, _SERVICES, _start_of(payload), [payload.service])[0]

    def unsaved(self) -> Mapping[str, Sequence[Any]]:
        """Return the rows of ``names`` to store before messages with these decisions are counted."""
        parts = [names.unsaved() for names in self._names.values()]
        return {column: [v for part in parts for v in part[column]] for column in parts[0]} if parts else {}

    def saved(self) -> None:
        """Note that those rows are in the store."""
        for names in self._names.values():
            names.saved()

    def use(self, records: Sequence[Record]) -> None:
        """Note that ``totals`` covers these records now."""
        for record in records:
            if isinstance(record.payload, Profile):
                window = self._window(record.payload)
                usages = self._usage[record.topic, record.partition][_day_of(window)]
                key = (record.payload.service, window // PERIOD_S * PERIOD_S)
                messages, stacks = usages.by_period.get(key, (0, 0))
                usages.by_period[key] = (messages + 1, stacks + len(record.payload.counts))

    def _admits(
        self, record: Record, service: str, moment: float, names: Sequence[str], kind: str = ""
    ) -> list[bool]:
        known_names, day, offset = self._known(record, kind), _day_of(moment), record.offset
        if known_names.spelled(service, day, offset).issuperset(names):
            return [True] * len(names)
        quota = self._quotas.of(service)
        most = {"": quota.names, _HOSTS: quota.hosts, _STRATA: quota.strata}[kind]
        if service == _SERVICES:
            most = self._quotas.partition.services
        return known_names.admit(
            service, day, names, record.offset, offset, most=most, most_in_all=self._quotas.partition.names
        )

    def note_shortened(self, records: Sequence[Record], shortened: Sequence[int]) -> None:
        """Note how many stacks of each profile among the records were not kept as they came."""
        profiles = (record.payload for record in records if isinstance(record.payload, Profile))
        for profile, stacks in zip(profiles, shortened, strict=True):
            if stacks:
                self._note(profile.service, "shortened_stacks", stacks)

    def _known(self, record: Record, kind: str = "") -> KnownNames:
        key = ((record.topic, record.partition), kind)
        if key not in self._names:
            log = f"{self._streams[record.topic]}/{record.topic}/{record.partition}{kind}"
            self._names[key] = KnownNames(log)
        return self._names[key]

    def _repeats(self, record: Record) -> bool:
        """Return whether a message is a copy of one that was admitted earlier in the log."""
        if not (identity := _id_of(record)):
            return False
        payload: Counted = record.payload
        ids, day = self._known(record, _IDS), _day_of(_start_of(payload))
        seen = ids.first_seen(payload.service, day, identity)
        return seen is not None and seen < record.offset

    def _note_id(self, record: Record) -> None:
        if identity := _id_of(record):
            payload: Counted = record.payload
            ids, day = self._known(record, _IDS), _day_of(_start_of(payload))
            ids.note(payload.service, day, identity, record.offset)

    def _refused(self, profile: Profile, service: str) -> Refused:
        samples = int(profile.counts.sum())
        self._note(service, "refused_messages")
        self._note(service, "refused_samples", samples)
        return Refused(service, profile.start, profile.end, samples)

    def _spend(self, record: Record, spent: dict[tuple[_TopicPartition, str, float], Usage]) -> bool:
        """Count a profile against its service's quota of messages and stacks; False if that is used up."""
        profile: Profile = record.payload
        topic_partition, quota = (record.topic, record.partition), self._quotas.of(profile.service)
        window = self._window(profile)
        key = (topic_partition, profile.service, window // PERIOD_S * PERIOD_S)
        if key not in spent:
            spent[key] = self._usage[topic_partition][_day_of(window)].by_period.get(key[1:], (0, 0))
        messages, stacks = spent[key][0] + 1, spent[key][1] + len(profile.counts)
        if messages > quota.messages or stacks > quota.stacks:
            return False
        spent[key] = (messages, stacks)
        return True

    def _named(self, record: Record) -> Profile:
        """Return a profile whose names are short enough and within the quota."""
        profile = _cut(record.payload)
        if profile is not record.payload:
            self._note(profile.service, "cut_names")
        labels = [*profile.frames, *(element(a.kind, a.value) for a in profile.annotations)]
        known_labels = self._known(record).spelled(profile.service, _day_of(profile.start), record.offset)
        if known_labels.issuperset(labels):
            return profile
        candidates = _by_weight(profile, labels, known_labels)
        admitted = self._admits(record, profile.service, profile.start, candidates)
        folded = {label for label, is_admitted in zip(candidates, admitted, strict=True) if not is_admitted}
        if not folded:
            return profile
        self._note(profile.service, "folded_names", len(folded))
        return replace(
            profile,
            frames=tuple(OTHER if name in folded else name for name in profile.frames),
            annotations=tuple(
                Annotation(a.frame, a.kind, OTHER) if element(a.kind, a.value) in folded else a
                for a in profile.annotations
            ),
        )

    def _placed(self, record: Record, profile: Profile) -> Profile:
        """Return a profile whose sender is within the quota of hosts and strata."""
        sender = profile.sender
        group = repr((sender.release, sender.texts))
        if (sender.release or sender.labels) and not self._admits(
            record, profile.service, profile.start, [group], _STRATA
        )[0]:
            self._note(profile.service, "folded_strata")
            return replace(profile, host="", release="", labels={}, rate_hz=0.0)
        if not self._admits(record, profile.service, profile.start, [profile.host], _HOSTS)[0]:
            self._note(profile.service, "folded_hosts")
            return replace(profile, host="")
        return profile

    def _drop_usage_but(self, records: Sequence[Record]) -> None:
        """Drop all days but the last ``MAX_USAGE_DAYS`` and those that the records need."""
        needed = {_day_of(self._window(record.payload)) for record in records}
        for days in self._usage.values():
            for day in sorted(days.keys() - needed)[: max(len(days) - MAX_USAGE_DAYS, 0)]:
                del days[day]  # it can be read again

    def _window(self, profile: Profile) -> float:
        """Return the start of the window that a profile is counted in."""
        return (profile.start + profile.end) / 2 // self._window_s * self._window_s

    def _note(self, service: str, what: str, amount: int = 1) -> None:
        self.limited.setdefault(service, Counter())[what] += amount


def _id_of(record: Record) -> str:
    """Return the id that copies of a message share: its sender's, or that of the replay that sent it."""
    return getattr(record.payload, "id", "") or record.id


def _start_of(payload: Counted) -> float:
    return float(payload.timestamps.min()) if isinstance(payload, MetricPoints) else payload.start


def _day_of(moment: float) -> float:
    return moment // DAY_S * DAY_S


def _cut(profile: Profile) -> Profile:
    """Return a profile whose names are no longer than a bound; the same object if they were not."""
    if max(map(len, profile.frames), default=0) <= MAX_LABEL and all(
        len(a.value) <= MAX_LABEL for a in profile.annotations
    ):
        return profile
    return replace(
        profile,
        frames=tuple(map(cut_name, profile.frames)),
        annotations=tuple(Annotation(a.frame, a.kind, cut_name(a.value)) for a in profile.annotations),
    )


def _by_weight(profile: Profile, labels: Sequence[str], known_labels: set[str] | frozenset[str]) -> list[str]:
    """Return the unknown labels that samples hold, those with the most samples first."""
    depth = np.diff(profile.stack_starts)
    weights = np.bincount(
        profile.stack_frames, np.repeat(profile.counts, depth), minlength=len(profile.frames)
    ).tolist()
    weights += [weights[a.frame] for a in profile.annotations]
    heaviest: dict[str, float] = {}
    for label, weight in zip(labels, weights, strict=True):
        if weight and label not in known_labels:  # what no sample holds leaves no trace
            heaviest[label] = max(heaviest.get(label, 0.0), weight)
    return sorted(heaviest, key=lambda label: (-heaviest[label], label))
