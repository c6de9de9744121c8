"""The files around the code: what they promise has to be there."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from pipeline.cli import COMMANDS
from tests.support.cases import for_every
from tests.support.paths import ROOT

LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

DECLARED = [
    *PROJECT["build-system"]["requires"],
    *PROJECT["project"]["dependencies"],
    *(line for lines in PROJECT["project"]["optional-dependencies"].values() for line in lines),
]
OF_OTHERS = [line for line in DECLARED if not line.startswith("smidgen[")]  # but extras that include an extra


def locked() -> dict[str, list[Version]]:
    """Return the versions of each package; there are several where no one suits all versions of Python."""
    found: dict[str, list[Version]] = {}
    for name, version in re.findall(r"^([A-Za-z0-9._-]+)==([^ \\]+)", LOCK, re.MULTILINE):
        found.setdefault(canonicalize_name(name), []).append(Version(version))
    return found


@for_every("line", OF_OTHERS)
def test_every_dependency_is_locked_within_its_bounds(line: str) -> None:
    requirement = Requirement(line)
    versions = locked()[canonicalize_name(requirement.name)]
    assert any(version in requirement.specifier for version in versions), "run: make lock"


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(r"://", id="address"),
        pytest.param(r"--(extra-)?index-url|--find-links|--trusted-host", id="option"),
        pytest.param(r"(?m)^(?!#).*\s@\s", id="direct reference"),
        pytest.param(r"\b[a-z0-9-]+\.(org|com|net|io|dev)\b", id="host name"),
        pytest.param(r"(^|[\s=\"'])/\w+/", id="path"),
    ],
)
def test_the_lock_names_no_index_host_or_path(pattern: str) -> None:
    assert re.findall(pattern, LOCK) == []


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))


@for_every(
    "target",
    [
        *("help", "setup", "demo", "test", "test-fast", "calibrate", "lint", "format", "bench", "lock"),
        *("sbom", "clean"),
    ],
)
def test_make_help_lists_every_target(target: str) -> None:
    assert re.search(rf"^{target}:.*## \S", MAKEFILE, re.MULTILINE)


def documented(command: str) -> set[tuple[str, ...]]:
    """Return what follows ``command`` on the code lines of README.md, word by word."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    code = [line for block in blocks for line in block.splitlines()] + re.findall(r"`([^`\n]+)`", README)
    stripped = [line.strip().removeprefix("$ ").removeprefix(".venv/bin/") for line in code]
    return {tuple(line.split("#")[0].split()[1:]) for line in stripped if line.split()[:1] == [command]}


def test_the_readme_names_targets_that_exist() -> None:
    used = {words[0] for words in documented("make") if words}
    assert {"demo", "test"} <= used <= targets()


def test_the_readme_shows_the_commands_of_production() -> None:
    used = {words[0] for words in documented("smidgen") if words}
    assert {"worker", "agent", "events", "topics", "store"} <= used <= set(COMMANDS)


def test_the_changelog_has_the_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{PROJECT['project']['version']}]" in changelog


def test_the_licence_is_the_one_declared() -> None:
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert PROJECT["project"]["license"] == "Apache-2.0"
    assert "Apache License" in licence
    assert "END OF TERMS AND CONDITIONS" in licence


def test_no_module_outgrows_a_screenful_of_screens() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for folder in ("pipeline", "agents", "loadgen")
        for path in (ROOT / folder).rglob("*.py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 400
    }
    assert long == {}
