"""Services that send profiles of CPU: what they send of the wall beside them is left out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import replace

from agents.gateway.base import Decoded, MessagePart, SkippedPart

REMEMBERED_S = 3600.0
"""Seconds for which a service is one of CPU after it sent such a profile: many times what clients wait."""

MOST_SERVICES = 100_000


class CpuServices:
    """Memory of the services that sent CPU of late, for clients that send both in requests of their own."""

    def __init__(self) -> None:
        self._sent_at: OrderedDict[str, float] = OrderedDict()

    def without_wall(self, decoded: Decoded, now: float) -> Decoded:
        """Remember the services of CPU in a request, and leave out what services of CPU send of the wall."""
        for service in services_of(decoded.parts, "cpu"):
            self._sent_at[service] = now
            self._sent_at.move_to_end(service)
        while len(self._sent_at) > MOST_SERVICES:
            self._sent_at.popitem(last=False)
        walls = services_of(decoded.parts, "wall")
        of_cpu = {
            service for service in walls if now - self._sent_at.get(service, -REMEMBERED_S) < REMEMBERED_S
        }
        return without_wall(decoded, of_cpu)


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
