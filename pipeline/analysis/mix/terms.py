"""The terms in which strata differ: release, host, and each of their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipeline.model import BoolArray, FloatArray, IntArray, Stratum

Source = Literal["release", "label", "host"]

RELEASE_LABELS = frozenset(
    {
        "app.kubernetes.io/version",
        "build",
        "commit",
        "container.image.tag",
        "image",
        "pod-template-hash",
        "release",
        "revision",
        "service.version",
        "version",
    }
)
"""Labels that say what runs, as OpenTelemetry and Kubernetes name them: what they change is no mix."""


@dataclass(frozen=True, slots=True)
class MixTerm:
    """One thing that strata differ in, and which of its values each of them has."""

    source: Source
    name: str  # of the label; else as the source
    values: tuple[str, ...]  # distinct, sorted; empty where it is not known
    of: IntArray  # (strata,) index of its value

    @property
    def members(self) -> FloatArray:
        """1 where a stratum has a value: (strata, values)."""
        return np.asarray(self.of[:, None] == np.arange(len(self.values)), dtype=np.float64)


def release_of(stratum: Stratum) -> str:
    """Return what runs: the release, with the labels that say so too."""
    named = [f"{name}={value}" for name, value in stratum.labels if name.lower() in RELEASE_LABELS]
    return ";".join([stratum.release, *named] if stratum.release else named)


def runs(stratum: Stratum, release: str) -> bool:
    """Return whether a stratum runs a release: by its name, what labels say of it, or any ``name=value``."""
    name, _, value = release.partition("=")
    said = [text for label, text in stratum.labels if label.lower() in RELEASE_LABELS]
    return release in (stratum.release, release_of(stratum), *said) or (name, value) in stratum.labels


def terms(strata: Sequence[Stratum], lasting: BoolArray, recent: BoolArray | None = None) -> list[MixTerm]:
    """Return what strata differ in: releases, then labels by name, then hosts.

    A host is a value of its own only if it is there for long enough to be held against itself. Where names of
    hosts come and go, a change that comes with new ones is no matter of hosts.

    Args:
        strata: (strata,).
        lasting: (strata,) whether the host of each is there for long enough.
        recent: (strata,) whether the release of each came lately; all others are one. All are if None.
    """
    new = [True] * len(strata) if recent is None else recent.tolist()
    running = [release_of(stratum) if late else "" for stratum, late in zip(strata, new, strict=True)]
    found = [_term("release", "release", running)]
    names = sorted({name for stratum in strata for name, _ in stratum.labels})
    for name in names:
        if name.lower() not in RELEASE_LABELS:
            found.append(_term("label", name, [dict(stratum.labels).get(name, "") for stratum in strata]))
    hosts = [stratum.host if long else "" for stratum, long in zip(strata, lasting.tolist(), strict=True)]
    found.append(_term("host", "host", hosts))
    return [term for term in found if len(term.values) > 1]


def value_of(term: MixTerm, stratum: Stratum) -> str:
    """Return the value that any stratum has of a term."""
    if term.source == "label":
        return dict(stratum.labels).get(term.name, "")
    return stratum.host if term.source == "host" else release_of(stratum)


def _term(source: Source, name: str, given: Sequence[str]) -> MixTerm:
    values, of = np.unique(np.array(given, dtype=object).astype(str), return_inverse=True)
    return MixTerm(source, name, tuple(values.tolist()), of.astype(np.int64))
