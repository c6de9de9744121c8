"""Assembler of scans from their parts, with the messages that wait for the rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pipeline.codec.scans import join_scan
from pipeline.model import Record, Scan

Key = tuple[int, str, str]  # partition, service, workload


class ScanAssembler:
    """Collects the numbered parts of the scans of one topic.

    A publisher writes the parts of a scan in order into one partition, and after a crash it writes all of
    them again. So part 0 always begins anew, a part that does not continue what is open is a leftover of an
    earlier attempt, and a partition has at most one open scan of each service and workload.
    """

    def __init__(self) -> None:
        self._open: dict[Key, tuple[int, tuple[Scan, ...]]] = {}  # offset of the first part, parts so far

    def add(self, record: Record) -> Record | None:
        """Take a record in the order of its partition; return it, or its scan once that is whole, or None.

        A joined scan stands at the place of its last part. Payloads that are not scans pass through.
        """
        scan = record.payload
        if not isinstance(scan, Scan):
            return record
        key = (record.partition, scan.service, scan.workload)
        if scan.parts == 1:
            self._open.pop(key, None)
            return record
        first, parts = self._open.get(key, (record.offset, ())) if scan.part else (record.offset, ())
        if scan.part and not (parts and _continues(parts[-1], scan)):
            return None
        parts = (*parts, scan)
        if len(parts) < scan.parts:
            self._open[key] = (first, parts)
            return None
        self._open.pop(key, None)
        return replace(record, payload=join_scan(parts))

    def held_from(self, partition: int) -> int | None:
        """Return the lowest offset of a partition that waits for further parts; None if nothing waits."""
        firsts = (first for (number, _, _), (first, _) in self._open.items() if number == partition)
        return min(firsts, default=None)

    def forget(self) -> None:
        """Drop everything that is open: it will be delivered again."""
        self._open.clear()


def _continues(last: Scan, scan: Scan) -> bool:
    same = (scan.parts, scan.start, scan.end) == (last.parts, last.start, last.end)
    return same and scan.part == last.part + 1


def whole_scans(records: Iterable[Record]) -> list[Record]:
    """Return records that are in order and complete, the parts of each scan put together."""
    assembler = ScanAssembler()
    return [whole for record in records if (whole := assembler.add(record)) is not None]
