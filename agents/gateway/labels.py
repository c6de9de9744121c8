"""Labels of other agents, as service, host, release, endpoint and region."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.messages.fields import MAX_NAME
from pipeline.model.errors import InvalidMessage

MAX_LABELS = 200
"""Most labels of one profile."""

MAX_LABEL_NAME = 1024
"""Longest name of a label, in characters."""

DEFAULT_NAMES: Mapping[str, tuple[str, ...]] = {
    "service": ("service_name", "service.name", "service", "app", "application", "job"),
    "host": (
        *("hostname", "host.name", "host", "instance", "node", "k8s.node.name"),
        *("pod", "k8s.pod.name", "pod_name", "container.id"),
    ),
    "release": (
        *("version", "service_version", "service.version", "service_git_ref", "release"),
        *("vcs.ref.head.revision", "git_commit"),
    ),
    "endpoint": ("endpoint", "http.route", "route", "span_name", "trace endpoint"),
    "region": ("region", "cloud.region", "cloud_region"),
}
"""Names that other agents give our labels; the first one with a value counts."""

_UNUSUAL = re.compile(r"[^\w.:@-]+")
_MAX_SERVICE = 200
_MAX_HOST = 400


@dataclass(frozen=True, slots=True)
class LabelNames:
    """Names of our labels at other agents, and the labels of theirs that are kept as they are."""

    names: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: DEFAULT_NAMES)
    keep: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a profile or a point."""

    service: str
    host: str
    release: str = ""
    endpoint: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


def find_origin(labels: Mapping[str, str], names: LabelNames, *, peer: str = "") -> Origin:
    """Return the origin that labels name; without a host, the sender's address is the host.

    Raises:
        InvalidMessage: there is no service, or labels are too many, too long or not printable.
    """
    _check(labels)

    def value(meaning: str) -> str:
        return next((text for name in names.names[meaning] if (text := labels.get(name, "").strip())), "")

    service = service_name(value("service"))
    labels_kept = {name: labels[name] for name in names.keep if labels.get(name)}
    if region := value("region"):
        labels_kept["region"] = region
    host = re.sub(r"\s+", "-", value("host") or peer or "unknown")[:_MAX_HOST]
    return Origin(service, host, value("release"), value("endpoint"), labels_kept)


def service_name(text: str) -> str:
    """Return a service's name in valid spelling: characters that are not allowed become dots.

    Raises:
        InvalidMessage: nothing of the name is left, or it is too long.
    """
    name = _UNUSUAL.sub(".", text).strip(".:@-")
    if not name:
        raise InvalidMessage("labels: name no service")
    if len(name) > _MAX_SERVICE:
        raise InvalidMessage(f"labels: the service's name is longer than {_MAX_SERVICE} characters")
    return name


def _check(labels: Mapping[str, str]) -> None:
    if len(labels) > MAX_LABELS:
        raise InvalidMessage(f"labels: {len(labels)} of them, more than {MAX_LABELS}")
    for name, value in labels.items():
        if len(name) > MAX_LABEL_NAME or len(value) > MAX_NAME:
            raise InvalidMessage(f"labels: {name[:100]!r} or its value is too long")
        if not (name.isprintable() and value.isprintable()):
            raise InvalidMessage(f"labels: {name[:100]!r} or its value is not printable")
