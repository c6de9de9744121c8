"""Identity of a process from OpenTelemetry's variables and its cgroup."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

SERVICE_VARIABLE = "OTEL_SERVICE_NAME"
RESOURCE_VARIABLE = "OTEL_RESOURCE_ATTRIBUTES"

_ATTRIBUTES = {
    "service": ("service.name",),
    "release": ("service.version",),
    "region": ("cloud.region", "deployment.region"),
    "pod": ("k8s.pod.name",),
}
"""Keys in OTEL_RESOURCE_ATTRIBUTES by meaning; the first one present counts."""

_POD = re.compile(
    r"pod([0-9a-f]{8}([-_])[0-9a-f]{4}\2[0-9a-f]{4}\2[0-9a-f]{4}\2[0-9a-f]{12}|[0-9a-f]{32})(?![0-9a-f])"
)
"""A pod's uid: systemd's form of cgroups has underscores, that of static pods no separators."""

_CONTAINER_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
"""Docker, containerd, CRI-O, Podman and ECS name a container's cgroup by 64 digits, whatever is around."""

_CONTAINER_NAME = re.compile(
    r"/(?:lxc\.payload\.|lxc/|machine\.slice/machine-)([^/\n]+?)(?:\.scope)?(?=/|$)", re.M
)


def resource_attributes(environment: Mapping[str, str]) -> dict[str, str]:
    """Return service, release, region and pod, as far as OpenTelemetry's variables name them.

    ``OTEL_SERVICE_NAME`` wins over ``service.name``. Values are percent-decoded (OpenTelemetry's
    specification, "Resource SDK"); entries without key and value are left out.
    """
    pairs = (pair.partition("=") for pair in environment.get(RESOURCE_VARIABLE, "").split(","))
    attributes = {key.strip(): unquote(value.strip()) for key, equals, value in pairs if equals}
    identity = {
        name: next(attributes[key] for key in keys if attributes.get(key))
        for name, keys in _ATTRIBUTES.items()
        if any(attributes.get(key) for key in keys)
    }
    if service := environment.get(SERVICE_VARIABLE, "").strip():
        identity["service"] = service
    return identity


def pod_uid(cgroup: str) -> str:
    """Return the uid of the Kubernetes pod whose cgroup it is, with hyphens; empty if it is none."""
    match = _POD.search(cgroup)
    return match[1].replace("_", "-") if match else ""


def container_id(cgroup: str) -> str:
    """Return the id or name of the innermost container whose cgroup it is; empty if it is none."""
    ids = _CONTAINER_ID.findall(cgroup)
    if ids:
        return str(ids[-1])
    names = _CONTAINER_NAME.findall(cgroup)
    return str(names[-1]) if names else ""
