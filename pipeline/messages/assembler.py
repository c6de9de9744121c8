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
        """Return whether a part is of the same cut of the same scan."""
        mine = self.parts[0]
        ours, theirs = ((part.attempt, part.parts, part.start, part.end) for part in (mine, scan))
        return ours == theirs


class ScanAssembler:
    """Collector of the numbered parts of the scans of one topic.

    A publisher writes the parts of a scan in order into one partition. After a crash its successor writes all
    of them again, perhaps while the first still writes. The attempt of a part identifies the cut, and only
    parts of one attempt are assembled. Once a scan is whole, earlier attempts of its service and workload are
    dropped: their publisher is dead, or has been replaced.

    Parts of former versions have no attempt. Among those part 0 begins anew, and a part that does not
    continue what is open is a leftover.
    """

    def __init__(self) -> None:
        self._open: dict[_Key, list[_Attempt]] = {}  # those that began first are first

    def add(self, record: Record) -> Record | None:
        """Add a record, in the order of its partition; return it, or its whole scan, or None.

        An assembled scan has the offset of its last part. Payloads that are not scans pass through.
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
        firsts = (attempts[0].first for (number, _, _), attempts in self._open.items() if number == partition)
        return min(firsts, default=None)

    def forget(self) -> None:
        """Drop all incomplete scans: their parts will be delivered again."""
        self._open.clear()

    def _taken(self, key: _Key, offset: int, scan: Scan) -> _Attempt | None:
        """Return the attempt that a part continues or begins; None if it does neither."""
        attempts = self._open.get(key, [])
        for position, attempt in enumerate(attempts):
            if _is_continued(attempt, scan):
                # Two publishers write the same parts of one attempt: either may bring the next part.
                if scan.part != len(attempt.parts):
                    return None
                attempts[position] = replace(attempt, parts=(*attempt.parts, scan))
                return attempts[position]
        if scan.part:
            return None
        begun = _Attempt(offset, (scan,))
        open_attempts = [candidate for candidate in attempts if scan.attempt or candidate.parts[0].attempt]
        self._open[key] = [*open_attempts[-MAX_OPEN + 1 :], begun]
        return begun

    def _drop_until(self, key: _Key, offset: int) -> None:
        """Drop the attempts that began up to an offset."""
        left = [attempt for attempt in self._open.pop(key, []) if attempt.first > offset]
        if left:
            self._open[key] = left


def _is_continued(attempt: _Attempt, scan: Scan) -> bool:
    """Return whether a part belongs to an attempt; part 0 of a former version begins another one."""
    return attempt.is_of(scan) and bool(scan.attempt or scan.part)


def whole_scans(records: Iterable[Record]) -> list[Record]:
    """Return records, which are in order and complete, with the parts of each scan assembled."""
    assembler = ScanAssembler()
    return [whole for record in records if (whole := assembler.add(record)) is not None]
