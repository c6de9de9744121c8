"""Dead-letter limit: a stage stops when most of its sources send nothing usable.

Garbage from one sender must not stop a stage, but a broken deployment, after which no message is usable,
must not turn a whole topic into dead letters. So sources have votes, not messages: a source is the service
that a message's key names, and has one vote however much it sends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

MAX_KNOWN = 10_000
MAX_STRANGERS = 1_000
"""Most sources of each sort that are remembered; those heard longest ago are dropped first."""

MAX_SOURCE = 200
REMEMBERED = 4.0
"""Silence after which a source is forgotten, in multiples of ``after_s``."""


@dataclass(frozen=True, slots=True)
class LimitConfig:
    """Limits beyond which a stage stops.

    A source is bad once it has sent nothing usable for ``after_s``. The stage stops when more than
    ``share`` of the sources are bad, at least ``sources`` of them, with ``least`` refused messages.
    """

    share: float = 0.5
    least: int = 20
    after_s: float = 600.0
    sources: int = 3

    def within(self) -> LimitConfig:
        """Return the limit for topics that only Smidgen writes."""
        return LimitConfig(share=self.share, least=self.least, after_s=0.0, sources=1)


class TooManyDeadLetters(Exception):
    """Most of a stage's input cannot be used; the text is one line for a person."""


@dataclass(slots=True)
class _Source:
    last: float
    bad_since: float | None = None
    refused: int = 0


class DeadLetterLimit:
    """The sources of one topic, with the decision whether they are reason to stop.

    Sources that have sent something usable to this process, and those in ``expected``, are known; all others
    are strangers. Strangers vote only while no source is known: otherwise a sender could invent any number
    of them.
    """

    def __init__(
        self, limit: LimitConfig, clock: Callable[[], float], expected: Collection[str] = frozenset()
    ) -> None:
        self._limit = limit
        self._clock = clock
        self._expected = expected
        self._known: dict[str, _Source] = {}
        self._strangers: dict[str, _Source] = {}

    @property
    def bad(self) -> int:
        """Number of sources with a vote that are bad at present."""
        return len(self._bad(self._voters(self._clock())))

    def note(self, usable: Iterable[bytes | None], refused: Iterable[bytes | None]) -> None:
        """Note the keys of the usable and of the refused messages of a batch."""
        now = self._clock()
        good = {source_of(key) for key in usable}
        for source in good:
            self._known.pop(source, None)  # the order of the mapping is that of hearing
            self._known[source] = _Source(now)
            self._strangers.pop(source, None)
        for key in refused:
            source = source_of(key)
            if source not in good:
                self._refuse(source, now)
        _drop_oldest(self._known, MAX_KNOWN)
        _drop_oldest(self._strangers, MAX_STRANGERS)

    def reason_to_stop(self) -> str:
        """Return why the stage has to stop, as one line; empty if it has not."""
        limit = self._limit
        voters = self._voters(self._clock())
        bad = self._bad(voters)
        refused = sum(voters[name].refused for name in bad)
        if len(bad) < limit.sources or refused < limit.least or len(bad) <= limit.share * len(voters):
            return ""
        few = ", ".join(bad[:3]) + (", …" if len(bad) > 3 else "")
        return f"{len(bad)} of {len(voters)} sources ({few}) send nothing usable: {refused} messages refused"

    def _refuse(self, source: str, now: float) -> None:
        is_known = source in self._known or source in self._expected
        where = self._known if is_known else self._strangers
        source_state = where.pop(source, None) or _Source(now)
        source_state.last = now
        source_state.bad_since = now if source_state.bad_since is None else source_state.bad_since
        source_state.refused += 1
        where[source] = source_state

    def _voters(self, now: float) -> dict[str, _Source]:
        forgotten = now - max(1.0, REMEMBERED * self._limit.after_s) if self._limit.after_s else float("-inf")
        heard = {name: source for name, source in self._known.items() if source.last >= forgotten}
        if self._limit.after_s and (self._known or self._expected):
            return heard
        strangers = {name: source for name, source in self._strangers.items() if source.last >= forgotten}
        return {**strangers, **heard}

    def _bad(self, voters: dict[str, _Source]) -> list[str]:
        return [
            name
            for name, source in voters.items()
            if source.bad_since is not None and source.last - source.bad_since >= self._limit.after_s
        ]


def source_of(key: bytes | None) -> str:
    """Return the service that a key names: the text before its first slash, cut to a bound, printable."""
    return printable((key or b"").partition(b"/")[0][:MAX_SOURCE].decode(errors="replace"))


def printable(text: str) -> str:
    """Remove control characters and line breaks from a text that quotes untrusted input."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _drop_oldest(sources: dict[str, _Source], most: int) -> None:
    for name in list(sources)[: max(0, len(sources) - most)]:
        del sources[name]
