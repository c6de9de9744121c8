"""Requests of a service as series × periods: what the store adds up, and what is inserted into arrays.

Numbers come apart from names, so that half a million counts are arrays and no Python objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pipeline.model import FloatArray, IntArray, RequestPeriods
from pipeline.storage.answers import rows_of
from pipeline.storage.gcpu_series import Columns, Numbers

_RELEASE_COUNTS = """
SELECT
    cityHash64(toString(release)) AS series,
    toUnixTimestamp64Milli(window) AS place,
    toFloat64(sum(requests.requests)) AS count
FROM requests
WHERE service = {service:String}
    AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
GROUP BY series, place
"""

_RELEASE_NAMES = """
SELECT toString(release) AS release_name, '', cityHash64(release_name), max(width_s)
FROM requests
WHERE service = {service:String}
    AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
GROUP BY release_name
ORDER BY release_name
"""

_TYPE_COUNTS = """
SELECT
    cityHash64(toString(release), type) AS series,
    toUnixTimestamp64Milli(window) AS place,
    toFloat64(sum(requests.requests)) AS count
FROM requests
WHERE service = {service:String}
    AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
    AND release IN {releases:Array(String)}
GROUP BY series, place
"""

_TYPE_NAMES = """
SELECT toString(release) AS release_name, type, cityHash64(release_name, type), max(width_s)
FROM requests
WHERE service = {service:String}
    AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
    AND release IN {releases:Array(String)}
GROUP BY release_name, type
ORDER BY release_name, type
"""


def read_requests(
    columns: Columns, numbers: Numbers, values: Mapping[str, Any], releases: Sequence[str] | None
) -> RequestPeriods:
    """Return requests by release and period, and by type if releases are chosen; see Store.requests.

    Args:
        columns: Runs a query of names.
        numbers: Runs a query of counts.
        values: Service, and the start and end of the span in milliseconds.
        releases: Those that are read, by type; None: all, all types together.
    """
    if releases is None:
        counted, named = _RELEASE_COUNTS, _RELEASE_NAMES
    else:
        counted, named, values = _TYPE_COUNTS, _TYPE_NAMES, {**values, "releases": list(releases)}
    # Counts before names: what arrives between the two queries has a name at least.
    counts = numbers(counted, values)
    names, types, keys, widths = columns(named, 4, values)
    row, found = rows_of(counts["series"], np.asarray(keys, dtype=np.uint64))
    return _added_up(
        [(names[index], types[index]) for index in found],
        np.asarray(row, np.int64),
        counts["place"],
        counts["count"],
        max(widths, default=0.0),
    )


class RequestPoints:
    """Requests by release, type, period and its width, which add up."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, int, float]] = Counter()

    def add(
        self,
        releases: Iterable[str],
        types: Iterable[str],
        starts_ms: Iterable[int],
        widths_s: Iterable[float],
        requests: Iterable[int],
    ) -> None:
        """Add requests, one of each a row."""
        for key, many in zip(zip(releases, types, starts_ms, widths_s, strict=True), requests, strict=True):
            self._counts[key] += many

    def read(self, start_ms: int, end_ms: int, releases: Sequence[str] | None) -> RequestPeriods:
        """Return the requests of periods that begin in [start, end); see Store.requests."""
        rows = [
            ((release, "" if releases is None else type_), start, width, many)
            for (release, type_, start, width), many in self._counts.items()
            if start_ms <= start < end_ms and (releases is None or release in releases)
        ]
        number = {name: row for row, name in enumerate(sorted({name for name, *_ in rows}))}
        series, starts, widths, requests = zip(*rows, strict=True) if rows else ((), (), (), ())
        return _added_up(
            list(number),
            np.array([number[name] for name in series], np.int64),
            np.array(starts, np.int64),
            np.array(requests, np.float64),
            max(widths, default=0.0),
        )


def _added_up(
    names: Sequence[tuple[str, str]],
    series: IntArray,
    starts_ms: IntArray,
    requests: FloatArray,
    width_s: float,
) -> RequestPeriods:
    """Return requests as series × periods of one width.

    Args:
        names: Of each series, its release and type.
        series: (counts,) which one a count is of.
        starts_ms: (counts,) when its period begins.
        requests: (counts,)
        width_s: Of the longest period.
    """
    # Half a millisecond, because the store keeps whole ones, of periods that may be thirds of a second.
    numbers = np.floor((starts_ms + 0.5) / (1000.0 * (width_s or 1.0))).astype(np.int64)
    found, period = np.unique(numbers, return_inverse=True)
    matrix = np.bincount(series * len(found) + period, requests, minlength=len(names) * len(found))
    return RequestPeriods(
        releases=tuple(release for release, _ in names),
        types=tuple(type_ for _, type_ in names),
        starts=np.asarray(found * width_s, np.float64),
        width_s=width_s,
        requests=np.asarray(matrix.reshape(len(names), len(found)), np.float64),
    )
