"""Set-up metrics that correlate with a regression, and the changes that name them (FBDetect §5.4.9)."""

from __future__ import annotations

import re
from itertools import chain

import numpy as np

from pipeline.model import Change, FloatArray

_WORD = re.compile(r"[A-Za-z0-9_]+")
_DOTTED = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)+")
_SPECIFIC = re.compile(r"[A-Za-z]_*[0-9]|[A-Za-z0-9]_+[A-Za-z0-9]|[a-z][A-Z]")
_MIN_KNOWN = 6

SERVERS = "servers"
"""The set-up metric that says how many servers a service runs on."""

OWN_PREFIX = "smidgen."
"""Prefixes of the set-up metrics that Smidgen itself writes."""


def correlations(series: FloatArray, weights: FloatArray, metrics: FloatArray) -> FloatArray:
    """Return Pearson's correlation of a series with each of several others: (metrics,).

    Args:
        series: (windows,) the regressed series.
        weights: (windows,), 0 = no data.
        metrics: (metrics, windows), NaN = no data.

    Returns:
        NaN where either series is constant, or fewer than six windows have data of both.
    """
    coefficients = np.full(len(metrics), np.nan)
    for row, values in enumerate(metrics):
        finite = (weights > 0) & np.isfinite(values)
        if finite.sum() < _MIN_KNOWN:
            continue
        rise, moved = series[finite] - series[finite].mean(), values[finite] - values[finite].mean()
        if _moves(series[finite]) and _moves(values[finite]):
            scale = np.sqrt((rise @ rise) * (moved @ moved))
            coefficients[row] = np.clip(rise @ moved / scale, -1.0, 1.0)
    return coefficients


def _moves(values: FloatArray) -> bool:
    """Return whether values differ by more than rounding."""
    return bool(np.ptp(values) > 1e-12 * np.abs(values).max())


def shows_changes(metric: str) -> bool:
    """Return whether a set-up metric can show what a change did.

    The number of servers follows the load, and Smidgen's own metrics follow Smidgen: both correlate with
    regressions that they do not explain.
    """
    return metric != SERVERS and not metric.startswith(OWN_PREFIX)


def subjects_of(change: Change) -> frozenset[str]:
    """Return the subjects of a change: its gates, and identifiers of its texts.

    Title, summary and file names state the subject, so all of their identifiers count. A diff also holds
    hundreds of plain words ("the servers of this page"), so only its dotted names count, and identifiers with
    a digit, an underscore or a capital within.
    """
    stated = chain.from_iterable(
        _WORD.findall(text) for text in (change.title, change.summary, *change.files)
    )
    read = (word for word in _WORD.findall(change.content) if _SPECIFIC.search(word))
    return frozenset(chain(change.gates, stated, read, _DOTTED.findall(change.content)))


def names_metric(subjects: frozenset[str], metric: str) -> bool:
    """Return whether a change is about a set-up metric: it has its gate, or its text names it.

    The last part of a set-up metric's name is its subject: ``setup.gate.new_checkout`` that of the gate, and
    ``setup.compression_level`` that of the setting, of these names.
    """
    return metric in subjects or metric.rpartition(".")[2] in subjects
