"""The store at a constant mix of requests: series as if types of requests had stayed at their usual numbers.

Shares of types are learnt over the history of a scan, so every stage that judges the scan reads the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from pipeline.analysis.mix.request_shares import (
    RequestMix,
    Traffic,
    build_traffic,
    factors_at,
    fit_request_mix,
)
from pipeline.analysis.mix.standardise import standardise
from pipeline.model import SeriesMatrix
from pipeline.storage.interface import RequestQuery, SeriesQuery, Store
from pipeline.storage.view import StoreView


@dataclass(frozen=True, slots=True)
class RequestSpan:
    """What shares of types are learnt from, and of which series."""

    service: str
    start: float  # of the history, epoch seconds
    analysis: float  # its end
    end: float  # of the scan
    resolution_s: float
    least: float  # change of gCPU that is reported


@dataclass(frozen=True, slots=True)
class MovedByRequests:
    """Series with what the mix of requests made of them."""

    mix: RequestMix
    traffic: Traffic


def find_request_mix(store: Store, span: RequestSpan, matrix: SeriesMatrix) -> MovedByRequests | None:
    """Return what the mix of requests made of series in a scan; None where it moved none.

    Args:
        store: Of the requests; of a service without them it is asked one cheap thing.
        span: Of the scan.
        matrix: Series, as they are to be judged, that hold all of the span's windows.
    """
    return _moved(store, span, matrix) if _has_requests(store, span) else None


def _moved(store: Store, span: RequestSpan, matrix: SeriesMatrix) -> MovedByRequests | None:
    """Return the same of a service that has requests."""
    end = matrix.start + len(matrix.totals) * matrix.resolution_s
    every = store.counts(RequestQuery(span.service, matrix.start, end, step_s=end - matrix.start))
    releases = sorted(set(every.releases))
    periods = store.counts(
        RequestQuery(span.service, matrix.start, end, releases, step_s=matrix.resolution_s)
    )
    first, last = (round((at - matrix.start) / matrix.resolution_s) for at in (span.start, span.analysis))
    traffic = build_traffic(periods, matrix, slice(max(first, 0), last))
    mix = None if traffic is None else fit_request_mix(traffic, matrix, span.least)
    return None if traffic is None or mix is None else MovedByRequests(mix, traffic)


class RequestMixStore(StoreView):
    """A Store whose gCPU series of one service have the usual mix of requests."""

    def __init__(self, store: Store, span: RequestSpan) -> None:
        super().__init__(store)
        self._span = span

    def series(self, query: SeriesQuery) -> SeriesMatrix:
        """Return series at a constant mix of requests; see Store.series."""
        matrix = self._store.series(query)
        span = self._span
        if query.source != "gcpu" or query.service != span.service or not matrix.names or not self._served:
            return matrix
        asked = replace(query, start=span.start, end=span.end, resolution_s=span.resolution_s)
        whole = self._store.series(asked)
        found = _moved(self._store, span, whole)
        if found is None:
            return matrix
        return standardise(matrix, found.mix.series, factors_at(found.mix.factors, whole, matrix))

    @cached_property
    def _served(self) -> bool:
        """Whether any request of the service was counted where change points are looked for."""
        return _has_requests(self._store, self._span)


def _has_requests(store: Store, span: RequestSpan) -> bool:
    length_s = span.end - span.analysis
    return bool(store.counts(RequestQuery(span.service, span.analysis, span.end, step_s=length_s)).releases)
