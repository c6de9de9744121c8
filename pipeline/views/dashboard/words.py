"""Numbers, times and states in the words of lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from pipeline.model import Candidate
from pipeline.model.frames import name_parts
from pipeline.model.metric_kind import is_gcpu
from pipeline.views.dashboard.item import STATES, Item
from pipeline.views.report.explain import level

_NEW = 1000.0  # a rise above a thousandfold starts from practically nothing


def size(item: Item) -> str:
    """Write the change of a level: points of gCPU, or the metric's own unit."""
    if not is_gcpu(item.metric_kind):
        return f"{item.delta:+.4g}"
    points = item.delta * 100
    return f"{points:+.2f} pt" if abs(points) >= 0.05 or not points else f"{points:+.2g} pt"


def relative(ratio: float | None) -> str:
    """Write a relative change; a new series has none."""
    if ratio is None or ratio > _NEW:
        return "new"
    return f"{ratio * 100:+.0f} %" if abs(ratio) >= 0.1 else f"{ratio * 100:+.1f} %"


def levels(item: Item | Candidate) -> str:
    """Write the levels before and after."""
    ratio = is_gcpu(item.metric_kind)
    return f"{level(item.before, ratio=ratio)} → {level(item.after, ratio=ratio)}"


def servers(count: float | None) -> str:
    """Write the number of servers that a regression takes."""
    if count is None:
        return "–"
    return f"{count:,.0f}" if abs(count) >= 100 else f"{count:.2g}"


def ago(seconds: float) -> str:
    """Write the age of a time, in its largest unit."""
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if abs(seconds) >= length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def minute(epoch_s: float) -> str:
    """Write a time to the minute, UTC."""
    return datetime.fromtimestamp(epoch_s, tz=UTC).strftime("%Y-%m-%d %H:%M")


def iso(epoch_s: float) -> str:
    """Write a time for programs and inputs of forms, UTC."""
    return datetime.fromtimestamp(epoch_s, tz=UTC).strftime("%Y-%m-%dT%H:%M")


def rate(per_s: float) -> str:
    """Write samples a second."""
    if not per_s:
        return "none"
    return f"{per_s:,.0f}/s" if per_s >= 10 else f"{per_s:.2g}/s"


def thousands(count: float) -> str:
    """Write a count."""
    return f"{count:,.0f}"


def level_of(value: float, ratio: bool) -> str:
    """Write a level: gCPU in per cent, anything else in its own unit."""
    return level(value, ratio=ratio)


def breakable(name: str) -> Markup:
    """Let a long name break after its dots, slashes and underscores, and elsewhere only if it must."""
    return Markup(re.sub(r"([._/])", r"\1<wbr>", str(escape(name))))  # noqa: S704


def short_name(metric: str) -> tuple[str, str]:
    """Split a dotted name into its beginning, and the end that is most specific."""
    if "/" in metric or "=" in metric:
        return "", metric
    end = ".".join(name_parts(metric)[-2:])
    return metric.removesuffix(end), end


def urlencode(text: object) -> str:
    """Write a name as one part of an address: slashes are escaped, unlike by Jinja's own filter."""
    return quote(str(text), safe="")


def a_minute(rate: float) -> str:
    """Return requests a minute, with significant digits only."""
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


FILTERS: Mapping[str, Callable[..., Any]] = {
    "a_minute": a_minute,
    "size": size,
    "change_ratio": relative,
    "levels": levels,
    "servers_taken": servers,
    "minute": minute,
    "iso": iso,
    "rate": rate,
    "thousands": thousands,
    "level_of": level_of,
    "short_name": short_name,
    "breakable": breakable,
    "urlencode": urlencode,
    "meaning": STATES.__getitem__,
}
"""Filters of templates, in addition to those of reports."""
