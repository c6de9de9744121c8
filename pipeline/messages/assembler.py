"""Assembler of scans from their parts, with the messages that wait for the rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pipeline.messages.scans import join_scan
from pipeline.model import Record, Scan

MAX_OPEN = 4
"""Most attempts at scans of one service and workload that wait for further parts: two publishers may write at
once while a partition changes hands, and one that dies again and again leaves one attempt each time."""

_Key = tuple[int, str, str]  # partition, service, workload


@dataclass(frozen=True, slots=True)
class _Attempt:
    """Parts of one cut of a scan, in order and not complete."""

    first: int  # offset of part 0
    parts: tuple[Scan, ...]

    def is_of(self, scan: Scan) -> bool:
        """Say whether a part is of the same cut of the same scan."""
        mine = self.parts[0]
        ours, theirs = ((one.attempt, one.parts, one.start, one.end) for one in (mine, scan))
        return ours == theirs


class ScanAssembler:
    """Collects the numbered parts of the scans of one topic.

    A publisher writes the parts of a scan in order into one partition, and after a crash its successor writes
    all of them again, perhaps while it is still writing itself. Each part says by its attempt which cut it is
    of, and only parts of one attempt are put together. Once a scan is whole, attempts of its service and
    workload that began before it are dropped: who wrote them is dead, or has been replaced.

    Parts of former versions have no attempt. Among those part 0 begins anew, and a part that does not
    continue what is open is a leftover.
    """

    def __init__(self) -> None:
        self._open: dict[_Key, list[_Attempt]] = {}  # those that began first are first

    def add(self, record: Record) -> Record | None:
        """Take a record in the order of its partition; return it, or its scan once that is whole, or None.

        A joined scan stands at the offset of its last part. Payloads that are not scans pass through.
        """
        scan = record.payload
        if not isinstance(scan, Scan):
            return record
        key = (record.partition, scan.service, scan.workload)
        if scan.parts == 1:
            self._drop_until(key, record.offset)
            return record
        attempt = self._taken(key, record.offset, scan)
        if attempt is None or len(attempt.parts) < scan.parts:
            return None
        self._drop_until(key, attempt.first)
        return replace(record, payload=join_scan(attempt.parts))

    def held_from(self, partition: int) -> int | None:
        """Return the lowest offset of a partition that waits for further parts; None if nothing waits."""
        firsts = (found[0].first for (number, _, _), found in self._open.items() if number == partition)
        return min(firsts, default=None)

    def forget(self) -> None:
        """Drop everything that is open: it will be delivered again."""
        self._open.clear()

    def _taken(self, key: _Key, offset: int, scan: Scan) -> _Attempt | None:
        """Return the attempt that a part continues or begins; None if it does neither."""
        found = self._open.get(key, [])
        for position, known in enumerate(found):
            if _is_continued(known, scan):
                # What two publishers write of one attempt is the same: either may bring the next part.
                if scan.part != len(known.parts):
                    return None
                found[position] = replace(known, parts=(*known.parts, scan))
                return found[position]
        if scan.part:
            return None
        begun = _Attempt(offset, (scan,))
        kept = [one for one in found if scan.attempt or one.parts[0].attempt]
        self._open[key] = [*kept[-MAX_OPEN + 1 :], begun]
        return begun

    def _drop_until(self, key: _Key, offset: int) -> None:
        """Drop the attempts that began up to an offset."""
        left = [one for one in self._open.pop(key, []) if one.first > offset]
        if left:
            self._open[key] = left


def _is_continued(attempt: _Attempt, scan: Scan) -> bool:
    """Say whether a part is one of an attempt's; part 0 of a former version begins another one."""
    return attempt.is_of(scan) and bool(scan.attempt or scan.part)


def whole_scans(records: Iterable[Record]) -> list[Record]:
    """Return records that are in order and complete, the parts of each scan put together."""
    assembler = ScanAssembler()
    return [whole for record in records if (whole := assembler.add(record)) is not None]
