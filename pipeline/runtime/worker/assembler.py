"""Assembler of scans from their parts, with the messages that wait for the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pipeline.codec.scans import join_scan
from pipeline.model import Record, Scan

Key = tuple[int, str, str]  # partition, service, workload


@dataclass(frozen=True, slots=True)
class _Open:
    """A scan of which the first parts are here."""

    parts: tuple[Scan, ...]
    first_offset: int


class ScanAssembler:
    """Collects the numbered parts of the scans of one topic.

    A publisher writes the parts of a scan in order into one partition, and after a crash it writes all of
    them again. So part 0 always begins anew, a part that does not continue what is open is a leftover of an
    earlier attempt, and a partition has at most one open scan of each service and workload.
    """

    def __init__(self) -> None:
        self._open: dict[Key, _Open] = {}

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
        found = self._continued(key, scan, record.offset)
        if found is None:
            return None
        if len(found.parts) < scan.parts:
            self._open[key] = found
            return None
        self._open.pop(key, None)
        return replace(record, payload=join_scan(list(found.parts)))

    def held_from(self, partition: int) -> int | None:
        """Return the lowest offset of a partition that waits for further parts; None if nothing waits."""
        return min((o.first_offset for (p, _, _), o in self._open.items() if p == partition), default=None)

    def forget(self) -> None:
        """Drop everything that is open: it will be delivered again."""
        self._open.clear()

    def _continued(self, key: Key, scan: Scan, offset: int) -> _Open | None:
        if scan.part == 0:
            return _Open((scan,), offset)
        before = self._open.get(key)
        if before is None or not _continues(before.parts, scan):
            return None
        return replace(before, parts=(*before.parts, scan))


def _continues(parts: tuple[Scan, ...], scan: Scan) -> bool:
    last = parts[-1]
    return scan.part == last.part + 1 and (scan.parts, scan.start, scan.end) == (
        last.parts,
        last.start,
        last.end,
    )
