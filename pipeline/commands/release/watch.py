"""Looks at two releases: one look, or several until there is a decision."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import click

from pipeline.commands.release.reading import Asked, NotYet, ReleaseComparison, SampleSource, compare
from pipeline.model.clock import system_clock, to_iso
from pipeline.model.errors import ConfigError, StoreUnavailable
from pipeline.model.units import WEEK_S

Span = tuple[float | None, float | None]
"""Requested start and end; None where not given."""


@dataclass(frozen=True, slots=True)
class LookSchedule:
    """Interval and duration of the looks."""

    interval_s: float
    timeout_s: float | None  # None: until there is a decision


def look_at_folder(
    source: SampleSource, asked: Asked, span: Span, watch: LookSchedule | None
) -> ReleaseComparison:
    """Return the comparison of two releases in a folder; a watch takes its blocks as they would have come.

    Raises:
        ConfigError: the folder has nothing of the span, or not both releases.
    """
    since, until = span
    end = source.origin if source.end is None else source.end
    if until is not None:
        if until <= source.origin:
            raise ConfigError(f"--until: the data begin at {to_iso(source.origin)}")
        end = min(end, _whole(source, until))
    if since is not None and since >= end:
        raise ConfigError(f"--since: the data end at {to_iso(end)}")
    start = source.origin if since is None else source.start_of(max(since, source.origin))
    _check_span((start, end), source)
    looks = range(1, int((end - start) / source.block_s)) if watch else ()
    for look in looks:
        try:
            comparison = compare(source, asked, (start, start + look * source.block_s))
        except NotYet:
            continue
        if comparison.decision != "open":
            return comparison
    return compare(source, asked, (start, end))


def look_at_store(
    opened: Callable[[], SampleSource], asked: Asked, span: Span, watch: LookSchedule | None
) -> ReleaseComparison:
    """Return the comparison of two releases in a store; a watch looks until it is decided or over.

    A watch waits for a release without samples, and for a store that does not answer; stderr names the
    reason.

    Raises:
        ConfigError: the store is not as it should be; or the releases were not there at the last look.
        StoreUnavailable: the store does not answer; or did not at any look.
    """
    begun = system_clock()
    deadline = begun + watch.timeout_s if watch and watch.timeout_s is not None else None
    source: SampleSource | None = None
    comparison: ReleaseComparison | None = None
    shown = ""
    while True:
        now = system_clock()
        over = watch is None or any(end is not None and now >= end for end in (span[1], deadline))
        try:
            source = source or opened()
            comparison = compare(source, asked, _span_at(now, source, span))
        except (NotYet, StoreUnavailable) as failure:
            if over and comparison is None:
                raise
            if str(failure) != shown:
                shown = str(failure)
                click.echo(f"waiting: {shown}", err=True)
        if comparison is not None and (over or comparison.decision != "open"):
            return comparison
        wait_s = watch.interval_s if watch else 0.0
        time.sleep(wait_s if deadline is None else max(0.0, min(wait_s, deadline - now)))


def _span_at(now: float, source: SampleSource, span: Span) -> tuple[float, float]:
    since, until = span
    if until is not None and now >= until:
        end = _whole(source, until)
        start = end - WEEK_S if since is None else since
        _check_span((start, end), source)
        return start, end
    if since is not None and since >= now:
        raise ConfigError("--since: should be before the end")
    return now - WEEK_S if since is None else since, now


def _whole(source: SampleSource, until: float) -> float:
    """Return the end of the last block that is complete at a time; the end of all data completes one, too."""
    if source.end is not None and until >= source.end:
        return source.end
    return source.start_of(until)


def _check_span(span: tuple[float, float], source: SampleSource) -> None:
    if span[0] >= span[1]:
        raise ConfigError(f"--until: no whole block of {source.block_s:g} s is over before it")
