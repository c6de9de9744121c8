"""Requests of a service as series × periods, from queries of the store or from inserted rows.

Numbers are read separately from names, so that half a million counts are arrays, not Python objects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pipeline.model import BUCKETS_AN_OCTAVE, FloatArray, IntArray, RequestCounts, RequestPeriods
from pipeline.storage.answers import rows_of
from pipeline.storage.gcpu_series import Columns, Numbers
from pipeline.storage.schema import to_ms

REQUEST_COLUMNS = ("release", "type", "window", "width_s", "requests", "times")
"""The columns of a row of requests that are read."""

# ``place`` is the start of a row's period, or of its step if all periods are shorter than the step.
_RELEASE_COUNTS = """
SELECT
    cityHash64(toString(release)) AS series,
    if(
        (
            SELECT max(width_s) FROM requests
            WHERE service = {service:String}
                AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
                AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
        ) * 1000 < {step:Int64},
        intDiv(toUnixTimestamp64Milli(window), greatest({step:Int64}, 1)) * {step:Int64},
        toUnixTimestamp64Milli(window)
    ) AS place,
    toFloat64(sum(requests.requests)) AS count,
    0.0 AS timed,
    0.0 AS logs
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
    if(
        (
            SELECT max(width_s) FROM requests
            WHERE service = {service:String}
                AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
                AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
        ) * 1000 < {step:Int64},
        intDiv(toUnixTimestamp64Milli(window), greatest({step:Int64}, 1)) * {step:Int64},
        toUnixTimestamp64Milli(window)
    ) AS place,
    toFloat64(sum(requests.requests)) AS count,
    toFloat64(sum(arraySum(mapValues(times)))) AS timed,
    toFloat64(sum(arraySum((at, many) -> (at + 0.5) * many, mapKeys(times), mapValues(times)))) AS logs
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
        values: Service; the start and end of the span, and the least width of a period, in milliseconds.
        releases: The releases to read, by type; None for all, with their types added up.
    """
    if releases is None:
        counts_query, names_query = _RELEASE_COUNTS, _RELEASE_NAMES
    else:
        counts_query, names_query, values = _TYPE_COUNTS, _TYPE_NAMES, {**values, "releases": list(releases)}
    # Counts before names: requests that are added between the two queries have a name at least.
    counts = numbers(counts_query, values)
    names, types, keys, widths = columns(names_query, 4, values)
    row, present = rows_of(counts["series"], np.asarray(keys, dtype=np.uint64))
    return _added_up(
        [(names[index], types[index]) for index in present],
        np.asarray(row, np.int64),
        counts["place"],
        [counts[name] for name in ("count", "timed", "logs")] if len(counts) else [np.empty(0)] * 3,
        _width(widths, values["step"] / 1000),
    )


class RequestPoints:
    """Sums of requests and response times by release, type, period and width of the period."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, int, float], FloatArray] = {}

    def add(
        self,
        releases: Iterable[str],
        types: Iterable[str],
        starts_ms: Iterable[int],
        widths_s: Iterable[float],
        requests: Iterable[int],
        times: Iterable[Mapping[int, int]],
    ) -> None:
        """Add rows of requests, given as one iterable per column of REQUEST_COLUMNS."""
        keys = zip(releases, types, starts_ms, widths_s, strict=True)
        for key, number, sketch in zip(keys, requests, times, strict=True):
            logs = sum((bucket + 0.5) * timed for bucket, timed in sketch.items())
            self._counts[key] = self._counts.get(key, 0.0) + np.array([number, sum(sketch.values()), logs])

    def load(self, counted: Iterable[RequestCounts]) -> None:
        """Add the requests of hosts and periods."""
        for period_counts in counted:
            types = len(period_counts.types)
            self.add(
                [period_counts.release] * types,
                [type_counts.type for type_counts in period_counts.types],
                [to_ms(period_counts.start)] * types,
                [period_counts.period_s] * types,
                [type_counts.requests for type_counts in period_counts.types],
                [dict(type_counts.times) for type_counts in period_counts.types],
            )

    def read(
        self, start_ms: int, end_ms: int, releases: Sequence[str] | None, width_s: float = 0.0
    ) -> RequestPeriods:
        """Return the requests of periods that begin in [start, end); see Store.requests."""
        rows = [
            ((release, "" if releases is None else type_), start, width, sums)
            for (release, type_, start, width), sums in self._counts.items()
            if start_ms <= start < end_ms and (releases is None or release in releases)
        ]
        number = {name: row for row, name in enumerate(sorted({name for name, *_ in rows}))}
        series, starts, widths, sums = zip(*rows, strict=True) if rows else ((), (), (), ())
        requests, timed, logs = np.array(sums, np.float64).reshape(-1, 3).T
        if releases is None:
            timed = logs = np.zeros(len(rows))
        return _added_up(
            list(number),
            np.array([number[name] for name in series], np.int64),
            np.array(starts, np.int64),
            [requests, timed, logs],
            _width(widths, width_s),
        )


def _width(widths_s: Collection[float], least_s: float) -> float:
    """Return the common width to which periods are added up: the largest, at least ``least_s``; 0 of none."""
    return max(*widths_s, least_s) if widths_s else 0.0


def _added_up(
    names: Sequence[tuple[str, str]],
    series: IntArray,
    starts_ms: IntArray,
    counts: Sequence[FloatArray],
    width_s: float,
) -> RequestPeriods:
    """Return requests as series × periods of one width.

    Args:
        names: Release and type of each series.
        series: (counts,) index of a count's series.
        starts_ms: (counts,) start of its period.
        counts: Three arrays (counts,): requests, those with a response time, and sums of bucket middles.
        width_s: Width of the longest period.
    """
    # Half a millisecond is added because the store keeps whole ones, of periods such as 1/3 s.
    numbers = np.floor((starts_ms + 0.5) / (1000.0 * (width_s or 1.0))).astype(np.int64)
    distinct, period = np.unique(numbers, return_inverse=True)
    shape = len(names), len(distinct)
    requests, timed, buckets = (
        np.bincount(series * len(distinct) + period, values, minlength=shape[0] * shape[1]).reshape(shape)
        for values in counts
    )
    return RequestPeriods(
        releases=tuple(release for release, _ in names),
        types=tuple(type_ for _, type_ in names),
        starts=np.asarray(distinct * width_s, np.float64),
        width_s=width_s,
        requests=np.asarray(requests, np.float64),
        timed=np.asarray(timed, np.float64),
        log_times=np.asarray(buckets * np.log(2.0) / BUCKETS_AN_OCTAVE, np.float64),
    )
