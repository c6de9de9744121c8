"""All samplings of a host: started, followed and ended as processes come and go."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence

from agents.host.backoff import Backoff
from agents.host.discovery import MatchedProcess
from agents.host.process_sampling import ProcessSampling, SamplingSettings

log = logging.getLogger(__name__)

MOST_REASONS = 100
"""Most reasons that are logged: messages of a kernel may differ from process to process."""

Key = tuple[int, float]


class Samplings:
    """The processes that are sampled now."""

    def __init__(self, settings: SamplingSettings) -> None:
        self._settings = settings
        self._running: dict[Key, ProcessSampling] = {}
        self._ending: list[ProcessSampling] = []
        self._backoffs: dict[Key, Backoff] = {}
        self._reported: set[str] = set()

    @property
    def keys(self) -> frozenset[Key]:
        """Keys of the processes that are sampled."""
        return frozenset(self._running)

    @property
    def running(self) -> Sequence[ProcessSampling]:
        """The samplings that run."""
        return tuple(self._running.values())

    def waiting(self, now: float) -> frozenset[Key]:
        """Return the processes that could not be sampled and are not tried again yet."""
        return frozenset(key for key, backoff in self._backoffs.items() if backoff.until > now)

    def failures(self) -> Mapping[str, int]:
        """Return how many processes cannot be sampled, by reason."""
        return Counter(backoff.reason for backoff in self._backoffs.values())

    def follow(self, chosen: Sequence[MatchedProcess], present: frozenset[Key], now: float) -> None:
        """Sample the chosen processes, and no others.

        Args:
            chosen: Processes to sample.
            present: All processes that still live; backoffs of others are forgotten.
            now: Epoch seconds.
        """
        self._reap(now)
        wanted = {process.key: process for process in chosen}
        for key, sampling in list(self._running.items()):
            if key not in wanted or wanted[key].target != sampling.matched.target:
                sampling.stop()
                self._ending.append(self._running.pop(key))
        self._backoffs = {key: backoff for key, backoff in self._backoffs.items() if key in present}
        busy = {sampling.matched.key for sampling in self._ending}
        for key, process in wanted.items():
            backoff = self._backoffs.get(key)
            if key not in self._running and key not in busy and not (backoff and backoff.until > now):
                self._running[key] = ProcessSampling(process, self._settings)
                self._running[key].start()

    def stop(self, timeout_s: float) -> None:
        """End all samplings, and wait for them with a timeout in seconds."""
        self._ending += self._running.values()
        self._running = {}
        for sampling in self._ending:
            sampling.stop()
        deadline = self._settings.clock() + timeout_s
        for sampling in self._ending:
            sampling.join(max(deadline - self._settings.clock(), 0.0))

    def _reap(self, now: float) -> None:
        self._ending = [sampling for sampling in self._ending if not sampling.ended]
        failed: Counter[str] = Counter()
        for key, sampling in list(self._running.items()):
            if not sampling.ended:
                continue
            del self._running[key]
            if sampling.failure:
                before = self._backoffs.get(key, Backoff())
                self._backoffs[key] = before.after_failure(sampling.failure, now)
                failed[sampling.failure] += 1
        for reason in sorted(failed.keys() - self._reported)[: MOST_REASONS - len(self._reported)]:
            log.warning(
                "cannot sample %d of the processes: %s; each is tried again later", failed[reason], reason
            )
            self._reported.add(reason)
