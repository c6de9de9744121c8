"""Clocks of services: a service that sends profiles of CPU has those of the wall beside them left out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from agents.gateway.base import Decoded, MessagePart, SkippedPart

REMEMBERED_S = 3600.0
"""Seconds for which a service is one of CPU, or of the wall alone, after it sent such a profile."""

HELD_S = 60.0
"""Seconds for which profiles of the wall wait for one of CPU: several uploads of any client."""

MOST_SERVICES = 100_000


@dataclass(slots=True)
class _Held:
    """Profiles of the wall that wait, since a time, to see whether their service sends CPU, too."""

    since: float
    parts: list[MessagePart] = field(default_factory=list)


class ServiceClocks:
    """Memory of what services sent of late, for clients that send both clocks in requests of their own.

    Profiles of the wall of a service of which neither is known are held: if one of CPU comes in time, they
    are left out; else the service is of the wall alone.
    """

    def __init__(self) -> None:
        self._cpu_at: OrderedDict[str, float] = OrderedDict()
        self._wall_at: OrderedDict[str, float] = OrderedDict()  # of services of the wall alone
        self._held: OrderedDict[str, _Held] = OrderedDict()  # the longest first
        self.held_messages = self.held_bytes = 0

    def without_wall(self, decoded: Decoded, now: float) -> Decoded:
        """Leave out what services of CPU, those of this request among them, send of the wall."""
        of_cpu = services_of(decoded.parts, "cpu")
        walls = services_of(decoded.parts, "wall")
        return without_wall(decoded, of_cpu | {name for name in walls if _is_recent(self._cpu_at, name, now)})

    def note_cpu(self, services: Iterable[str], now: float) -> tuple[MessagePart, ...]:
        """Note services that send CPU; return what was held of their wall, which is to be left out."""
        left_out: list[MessagePart] = []
        for service in services:
            _note(self._cpu_at, service, now)
            self._wall_at.pop(service, None)
            if held := self._held.pop(service, None):
                left_out += self._taken(held)
        return tuple(left_out)

    def hold(self, part: MessagePart, now: float) -> bool:
        """Return whether a part waits: it is of the wall, and its service is not known to have that alone."""
        if part.clock != "wall":
            return False
        if _is_recent(self._wall_at, part.service, now):
            _note(self._wall_at, part.service, now)
            return False
        self._held.setdefault(part.service, _Held(now)).parts.append(part)
        self.held_messages += 1
        self.held_bytes += len(part.message.value)
        return True

    def release(self, now: float) -> tuple[MessagePart, ...]:
        """Return the parts that have waited long enough: their services are of the wall alone."""
        released: list[MessagePart] = []
        while self._held and now - next(iter(self._held.values())).since >= HELD_S:
            service, held = self._held.popitem(last=False)
            _note(self._wall_at, service, now)
            released += self._taken(held)
        return tuple(released)

    def _taken(self, held: _Held) -> list[MessagePart]:
        self.held_messages -= len(held.parts)
        self.held_bytes -= sum(len(part.message.value) for part in held.parts)
        return held.parts


def _note(times: OrderedDict[str, float], service: str, now: float) -> None:
    times[service] = now
    times.move_to_end(service)
    while len(times) > MOST_SERVICES:
        times.popitem(last=False)


def _is_recent(times: OrderedDict[str, float], service: str, now: float) -> bool:
    return now - times.get(service, -REMEMBERED_S) < REMEMBERED_S


def services_of(parts: Iterable[MessagePart], clock: str) -> set[str]:
    """Return the services with a profile that follows a clock."""
    return {part.service for part in parts if part.clock == clock}


def without_wall(decoded: Decoded, of_cpu: Collection[str]) -> Decoded:
    """Leave out profiles of the wall's clock of these services, and say so."""
    taken = tuple(part for part in decoded.parts if part.clock != "wall" or part.service not in of_cpu)
    if len(taken) == len(decoded.parts):
        return decoded
    text = f"wall: not CPU, {len(decoded.parts) - len(taken)} profiles beside those of CPU"
    return replace(
        decoded, parts=taken, skipped=(*decoded.skipped, SkippedPart("not_cpu", text, is_wrong=False))
    )
