"""Selections of stack samples, from an address: a span, senders, and a comparison."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.model import Stratum
from pipeline.model.errors import ConfigError
from pipeline.model.units import DAY_S, HOUR_S, MINUTE_S, WEEK_S
from pipeline.views.dashboard.query import read_time

Span = tuple[float, float]
"""Start and end, epoch seconds."""

SPANS: Mapping[str, float] = {
    "15m": 15 * MINUTE_S,
    "1h": HOUR_S,
    "4h": 4 * HOUR_S,
    "1d": DAY_S,
    "3d": 3 * DAY_S,
    "7d": WEEK_S,
}
AGAINST: Mapping[str, str] = {
    "": "nothing",
    "before": "the span before",
    "day": "the day before",
    "week": "the week before",
    "same": "others at the same time",
}
"""Kinds of comparison of a selection."""

NOT = "!"
"""Prefix of a value: all but this one."""

_LABELS = re.compile(r"(?:\\.|[^,\\]|\\$)+", re.DOTALL)
_ESCAPED = re.compile(r"\\([,\\])")

ANY = "*"
"""Any value, also on the other side."""


@dataclass(frozen=True, slots=True)
class SenderChoice:
    """A choice of senders: a field is a value, all but one after a ``!``, or ``*`` or empty for any."""

    release: str = ""
    host: str = ""
    label: str = ""  # name=value, several with commas between them; see split_labels

    @property
    def every(self) -> bool:
        """Whether no sender is excluded."""
        return not (self.release or self.host or self.label)

    def include(self, stratum: Stratum) -> bool:
        """Return whether the senders include a stratum."""
        texts = stratum.texts
        return (
            _fits(self.release, [stratum.release])
            and _fits(self.host, [stratum.host])
            and all(_fits(label, texts) for label in split_labels(self.label))
        )

    def over(self, others: SenderChoice) -> SenderChoice:
        """Return these senders, with open fields filled in from others."""
        return SenderChoice(
            self.release or others.release, self.host or others.host, self.label or others.label
        )

    def __str__(self) -> str:
        named = (("release", self.release), ("host", self.host), ("", self.label))
        parts = [
            f"{name} {value}".strip() if not value.startswith(NOT) else f"not {name} {value[1:]}"
            for name, value in named
            if value
        ]
        return ", ".join(parts).replace("  ", " ")


@dataclass(frozen=True, slots=True)
class View:
    """Content of the explorer and the API, from the address."""

    service: str
    start: float
    end: float
    before: Span  # empty: nothing is compared
    span: str
    against: str
    within: str = ""  # an element that every stack holds; empty: all stacks
    by: str = "host"  # senders by host, release or a label
    senders: SenderChoice = SenderChoice()
    other: SenderChoice = SenderChoice()  # of ``before``; open fields are those of ``senders``

    @property
    def other_senders(self) -> SenderChoice | None:
        """Senders of the other side; None for all that are not selected."""
        if self.against == "same" and self.other.every:
            return None
        return self.other.over(self.senders)


def read_view(given: Mapping[str, str], service: str, last: float) -> View:
    """Read an address.

    Args:
        given: Parameters of the address.
        service: Default service.
        last: Default end of the span.

    Raises:
        ConfigError: the parameter that is wrong.
    """
    span, against = given.get("span") or "1d", given.get("against", "")
    if span not in SPANS:
        raise ConfigError(f"span: should be one of {', '.join(SPANS)}, not {span[:40]!r}")
    if against not in AGAINST:
        raise ConfigError(
            f"against: should be one of {', '.join(filter(None, AGAINST))}, not {against[:40]!r}"
        )
    end = read_time(given, "end", last)
    start = read_time(given, "start", end - SPANS[span])
    if start >= end:
        raise ConfigError("start: should be before the end")
    senders, compared = read_senders(given), read_senders(given, "other_")
    if against == "same" and senders.every and compared.every:
        raise ConfigError("against: same needs a release, host or label, or one of the other side")
    if against == "":
        before = (start, start)
    else:
        back = {"before": end - start, "day": DAY_S, "week": WEEK_S, "same": 0.0}[against]
        before = (start - back, end - back)
    return View(
        service=given.get("service") or service,
        start=start,
        end=end,
        before=before,
        span=span,
        against=against,
        within=given.get("within", "").strip(),
        by=given.get("by") or "host",
        senders=senders,
        other=compared,
    )


def read_senders(given: Mapping[str, str], prefix: str = "") -> SenderChoice:
    """Read the senders of a side; ``prefix`` stands before the names of parameters.

    Raises:
        ConfigError: a label has no name.
    """
    release, host, label = (given.get(prefix + name, "").strip() for name in ("release", "host", "label"))
    if wrong := next((text for text in split_labels(label) if text and "=" not in text), ""):
        raise ConfigError(f"{prefix}label: should be as region=east, not {wrong[:40]!r}")
    return SenderChoice(release, host, label)


def split_labels(text: str) -> list[str]:
    r"""Return the labels of a text with commas between them; ``\,`` is a comma of one, ``\\`` a backslash.

    >>> split_labels(r"region=east, zone=a\,b")
    ['region=east', 'zone=a,b']
    """
    labels = [_ESCAPED.sub(r"\1", label) for label in _LABELS.findall(text)]
    return [label.strip() for label in labels]


def label_text(label: str) -> str:
    """Return a label in the form for a text of several labels."""
    return label.replace("\\", "\\\\").replace(",", "\\,")


def parts_of(stratum: Stratum) -> dict[str, str]:
    """Return the known properties of senders: host, release and labels."""
    return {"host": stratum.host, "release": stratum.release, **dict(stratum.labels)}


def choices_of(strata: Sequence[Stratum]) -> dict[str, list[str]]:
    """Return the releases, hosts and labels of senders, and the properties in which they differ."""
    return {
        "releases": sorted({stratum.release for stratum in strata if stratum.release}),
        "hosts": sorted({stratum.host for stratum in strata if stratum.host}),
        "labels": sorted({label_text(text) for stratum in strata for text in stratum.texts}),
        "names": sorted({name for stratum in strata for name in parts_of(stratum)}),
    }


def _fits(wanted: str, values: Sequence[str]) -> bool:
    if wanted.startswith(NOT):
        return wanted[1:] not in values
    return wanted in ("", ANY) or wanted in values
