"""Bill of materials of the packages that run in production, in CycloneDX: ``make sbom``.

Versions and hashes are those of requirements.lock; which packages belong to it follows from pyproject.toml
and their metadata. So the same lock gives the same bytes, on one version of Python. It names no index and no
address: packages are known by their names (purl), versions and hashes.
"""

from __future__ import annotations

import re
import sys
import tomllib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.paths import ROOT

_ENTRY = re.compile(
    r"^([A-Za-z0-9._-]+)==([^ \\;]+)(?: ; ([^\\]+?))? \\?\n((?:    --hash=.*\n?)+)", re.MULTILINE
)
_NAMESPACE = uuid.UUID("6f0c2a64-8e0e-5c52-9d3e-0b8e5f3d7a11")
_EPOCH = datetime(
    1980, 1, 1, tzinfo=UTC
)  # the lock has no time of its own, and the file must always be the same


@dataclass(frozen=True, slots=True)
class Locked:
    """One entry of the lock; ``marker`` is the condition of its installation."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]


def locked(lock: str) -> Iterator[Locked]:
    """Yield the entries of a lock."""
    for name, version, marker, hashes in _ENTRY.findall(lock):
        digests = tuple(sorted(re.findall(r"--hash=sha256:([0-9a-f]{64})", hashes)))
        yield Locked(canonicalize_name(name), version, marker.strip(), digests)


def in_production() -> dict[str, set[str]]:
    """Return the packages that Smidgen needs with the extra server, as in the image, and the needs of each.

    The needs of a package are in its metadata, so all packages have to be installed, as in ``make setup``.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    dependencies: dict[str, set[str]] = {}
    lines = [*project["dependencies"], *project["optional-dependencies"]["server"]]
    ahead = [Requirement(line) for line in lines]
    direct = {canonicalize_name(requirement.name) for requirement in ahead}
    wanted = [(canonicalize_name(requirement.name), requirement.extras) for requirement in ahead]
    while wanted:
        name, extras = wanted.pop()
        names = dependencies.setdefault(name, set())
        for line in metadata.requires(name) or ():
            requirement = Requirement(line)
            if _is_needed(requirement.marker, extras):
                needed = canonicalize_name(requirement.name)
                if needed not in names:
                    names.add(needed)
                    wanted.append((needed, requirement.extras))
    dependencies["smidgen"] = set(direct)
    return dependencies


def _is_needed(marker: Marker | None, extras: set[str]) -> bool:
    """Return whether a requirement holds on this system for one of the extras, or for none."""
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in {"", *extras})


def bill(lock: str) -> Bom:
    """Return the bill of materials of a lock."""
    needs = in_production()
    made = Bom(serial_number=uuid.uuid5(_NAMESPACE, lock))
    made.metadata.timestamp = _EPOCH
    made.metadata.tools.components.clear()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    root = Component(
        name="smidgen",
        version=project["version"],
        type=ComponentType.APPLICATION,
        bom_ref="smidgen",
        description=project["description"],
        licenses=[LicenseExpression(project["license"])],
        purl=PackageURL("pypi", name="smidgen", version=project["version"]),
    )
    made.metadata.component = root
    components: dict[str, list[Component]] = {"smidgen": [root]}
    for entry in locked(lock):
        if entry.name in needs:
            components.setdefault(entry.name, []).append(_component(entry))
    for name, those in components.items():
        made.components.update(component for component in those if component is not root)
        needed = [
            reference for dependency in sorted(needs[name]) for reference in components.get(dependency, ())
        ]
        for component in those:
            made.register_dependency(component, needed)
    return made


def _component(entry: Locked) -> Component:
    return Component(
        name=entry.name,
        version=entry.version,
        bom_ref=f"{entry.name}=={entry.version}",
        purl=PackageURL("pypi", name=entry.name, version=entry.version),
        # Of every file that may be installed: the system decides which one is.
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=content) for content in entry.hashes],
        properties=[Property(name="smidgen:marker", value=entry.marker)] if entry.marker else (),
    )


def render(lock: str) -> str:
    """Return the bill of materials as JSON."""
    return JsonV1Dot6(bill(lock)).output_as_string(indent=2) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(
        render((ROOT / "requirements.lock").read_text(encoding="utf-8")), encoding="utf-8"
    )
