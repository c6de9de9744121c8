"""Options of the sampler: arguments of ``start``, or else variables of the environment."""

from __future__ import annotations

import math
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

DEFAULT_HZ = 20.0
DEFAULT_INTERVAL_S = 10.0
DEFAULT_BUDGET = 0.01
"""Largest share of one CPU that sampling may take; the rate is lowered to keep it."""

MAX_HZ = 1000.0

SendTo: TypeAlias = "str | Callable[[bytes], object]"
"""A gateway (``http://host:port``), Kafka (``kafka://host:port``), a file (``file:path``) or a function."""

_SERVICE = re.compile(r"\w[\w.:@-]{0,199}")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|)")
_UNITS_S = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}
_PREFIX = "SMIDGEN_"


@dataclass(frozen=True, slots=True)
class Identity:
    """Source of samples: the properties that all messages of a process share."""

    service: str
    host: str
    release: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of ``start``; ``token`` is sent to a gateway, which may require it."""

    identity: Identity
    rate_hz: float
    interval_s: float
    send_to: SendTo
    wall: bool
    budget: float
    token: str = field(repr=False)


def read_options(given: Mapping[str, Any], environ: Mapping[str, str]) -> Options:
    """Merge arguments with the environment (``SMIDGEN_SERVICE`` and so on), which stands in for None.

    Raises:
        ValueError: an option is missing or wrong; the message names it.
    """

    def of(name: str) -> Any:
        value = given.get(name)
        return environ.get(_PREFIX + name.upper()) or None if value is None else value

    service = str(of("service") or "")
    if not _SERVICE.fullmatch(service):
        raise ValueError(f"service: should be a name of at most 200 characters, not {service[:40]!r}")
    send_to = of("send_to")
    if not send_to:
        raise ValueError("send_to: should be http://host:port of a gateway, kafka://host:port or file:path")
    host = str(of("host") or socket.gethostname())
    if not re.fullmatch(r"\S{1,400}", host):
        raise ValueError("host: should be a name without spaces")
    return Options(
        identity=Identity(service, host, str(of("release") or ""), _labels_of(of("labels"))),
        rate_hz=_number("rate_hz", of("rate_hz"), DEFAULT_HZ, MAX_HZ),
        interval_s=_duration_s(of("interval")),
        send_to=send_to,
        wall=str(of("wall") or "").lower() in ("1", "true", "yes", "on"),
        budget=_number("budget", of("budget"), DEFAULT_BUDGET, 1.0),
        token=environ.get(_PREFIX + "HTTP_TOKEN", ""),
    )


def _number(name: str, value: Any, default: float, largest: float) -> float:
    try:
        number = default if value is None else float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: should be a number, not {value!r}") from None
    if not (math.isfinite(number) and 0 < number <= largest):
        raise ValueError(f"{name}: should be more than 0 and at most {largest:g}, not {value!r}")
    return number


def _duration_s(value: Any) -> float:
    match = _DURATION.fullmatch(str(DEFAULT_INTERVAL_S if value is None else value))
    seconds = float(match[1]) * _UNITS_S[match[2]] if match else 0.0
    if not 0.5 <= seconds <= 3600:
        raise ValueError(f"interval: should be from 500ms to 1h, such as 10s, not {value!r}")
    return seconds


def _labels_of(value: Any) -> dict[str, str]:
    """Read labels of a mapping, or of a text such as ``region=eu,pool=a``."""
    if isinstance(value, Mapping):
        return {str(key): str(text) for key, text in value.items()}
    pairs = [pair.partition("=") for pair in str(value or "").split(",") if pair]
    if not all(key and equals for key, equals, _ in pairs):
        raise ValueError(f"labels: should be KEY=VALUE,KEY=VALUE, not {value!r}")
    return {key.strip(): text.strip() for key, _, text in pairs}
