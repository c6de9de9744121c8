"""The store at a constant mix of requests: series as if types of requests had kept their usual numbers.

Shares of types are learnt from the history of a scan, so all stages of a scan read the same series.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from pipeline.analysis.mix.request_shares import (
    RequestMix,
    RequestTraffic,
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
    """The span from which shares of types are learnt."""

    service: str
    start: float  # of the history, epoch seconds
    analysis: float  # its end
    end: float  # of the scan
    resolution_s: float
    least: float  # least change of gCPU that is reported


@dataclass(frozen=True, slots=True)
class MovedByRequests:
    """The mix of requests that moved series, and the traffic."""

    mix: RequestMix
    traffic: RequestTraffic


def find_request_mix(store: Store, span: RequestSpan, matrix: SeriesMatrix) -> MovedByRequests | None:
    """Return the effect of the mix of requests on the series of a scan; None if it moved none.

    Args:
        store: Holds the requests; for a service without requests it gets one cheap query.
        span: Span of the scan.
        matrix: Series to judge, over all windows of the span.
    """
    return _moved(store, span, matrix) if _has_requests(store, span) else None


def _moved(store: Store, span: RequestSpan, matrix: SeriesMatrix) -> MovedByRequests | None:
    """Return the result of ``find_request_mix`` for a service with requests."""
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
        of_span = replace(query, start=span.start, end=span.end, resolution_s=span.resolution_s)
        whole = self._store.series(of_span)
        moved = _moved(self._store, span, whole)
        if moved is None:
            return matrix
        return standardise(matrix, moved.mix.series, factors_at(moved.mix.factors, whole, matrix))

    @cached_property
    def _served(self) -> bool:
        """True if requests of the service were counted in the analysis or extended window."""
        return _has_requests(self._store, self._span)


def _has_requests(store: Store, span: RequestSpan) -> bool:
    length_s = span.end - span.analysis
    return bool(store.counts(RequestQuery(span.service, span.analysis, span.end, step_s=length_s)).releases)
