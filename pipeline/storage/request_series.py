"""Requests of a service as series × periods: what the store adds up, and what is inserted into arrays.

Numbers come apart from names, so that half a million counts are arrays and no Python objects.
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
"""What of a row of requests is read."""

# When a row's period begins, or the longer one that it is added up by if none of them is as long.
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
        [counts[name] for name in ("count", "timed", "logs")] if len(counts) else [np.empty(0)] * 3,
        _width(widths, values["step"] / 1000),
    )


class RequestPoints:
    """Requests by release, type, period and its width, with response times, which all add up."""

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
        """Add requests by REQUEST_COLUMNS, one of each a row."""
        keys = zip(releases, types, starts_ms, widths_s, strict=True)
        for key, many, sketch in zip(keys, requests, times, strict=True):
            logs = sum((bucket + 0.5) * timed for bucket, timed in sketch.items())
            self._counts[key] = self._counts.get(key, 0.0) + np.array([many, sum(sketch.values()), logs])

    def load(self, counted: Iterable[RequestCounts]) -> None:
        """Add the requests of hosts and periods."""
        for one in counted:
            many = len(one.types)
            self.add(
                [one.release] * many,
                [each.type for each in one.types],
                [to_ms(one.start)] * many,
                [one.period_s] * many,
                [each.requests for each in one.types],
                [dict(each.times) for each in one.types],
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
    """Return the width of the periods that periods of some widths are added up by; 0 of none."""
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
        names: Of each series, its release and type.
        series: (counts,) which one a count is of.
        starts_ms: (counts,) when its period begins.
        counts: Of each (counts,) requests, those with a response time, and the sum of its buckets' middles.
        width_s: Of the longest period.
    """
    # Half a millisecond, because the store keeps whole ones, of periods that may be thirds of a second.
    numbers = np.floor((starts_ms + 0.5) / (1000.0 * (width_s or 1.0))).astype(np.int64)
    found, period = np.unique(numbers, return_inverse=True)
    shape = len(names), len(found)
    requests, timed, buckets = (
        np.bincount(series * len(found) + period, each, minlength=shape[0] * shape[1]).reshape(shape)
        for each in counts
    )
    return RequestPeriods(
        releases=tuple(release for release, _ in names),
        types=tuple(type_ for _, type_ in names),
        starts=np.asarray(found * width_s, np.float64),
        width_s=width_s,
        requests=np.asarray(requests, np.float64),
        timed=np.asarray(timed, np.float64),
        log_times=np.asarray(buckets * np.log(2.0) / BUCKETS_AN_OCTAVE, np.float64),
    )
