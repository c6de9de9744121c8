"""The bill of materials: valid CycloneDX, of what runs in production, as requirements.lock has it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.bill_of_materials import locked, render
from tests.support.paths import ROOT

LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TEXT = render(LOCK)
BILL: dict[str, Any] = json.loads(TEXT)
COMPONENTS: dict[str, dict[str, Any]] = {one["bom-ref"]: one for one in BILL["components"]}


def names(lines: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for line in lines}


def problem(text: str) -> object:
    return JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)


def test_it_follows_the_schema() -> None:
    assert problem(TEXT) is None


@pytest.mark.parametrize(
    "mistake", [{"components": [{"name": "x"}]}, {"bomFormat": "x"}, {"serialNumber": "1"}]
)
def test_the_schema_sees_mistakes(mistake: dict[str, Any]) -> None:
    assert problem(json.dumps({**BILL, **mistake})) is not None


def test_the_lock_is_read_whole() -> None:
    found = [(one.name, one.version) for one in locked(LOCK)]
    lines = re.findall(r"^([A-Za-z0-9._-]+)==([^ \\;]+)", LOCK, re.MULTILINE)
    assert found == [(canonicalize_name(name), version) for name, version in lines]
    assert all(one.hashes for one in locked(LOCK))
    assert sum(len(one.hashes) for one in locked(LOCK)) == LOCK.count("--hash=sha256:")


def test_it_has_what_production_needs_and_no_tool() -> None:
    found = {component["name"] for component in BILL["components"]}
    extras = PROJECT["optional-dependencies"]
    runs = names([*PROJECT["dependencies"], *extras["server"]])
    assert runs <= found
    tools = names([*extras["dev"], *extras["embedded"]]) - runs - {"smidgen"}
    assert {"chdb", "pytest", "helm-python-sdk"} <= tools
    assert found & tools == set()
    assert {"mode-streaming", "pydantic-core", "aiosignal"} <= found, "what is needed by what is needed"


def test_versions_and_hashes_are_those_of_the_lock() -> None:
    by_reference = {f"{one.name}=={one.version}": one for one in locked(LOCK)}
    for reference, component in COMPONENTS.items():
        assert component["purl"] == f"pkg:pypi/{component['name']}@{component['version']}"
        hashes = {one["content"] for one in component["hashes"] if one["alg"] == "SHA-256"}
        assert hashes == set(by_reference[reference].hashes)


def test_everything_is_needed_by_something() -> None:
    needs = {one["ref"]: set(one.get("dependsOn", ())) for one in BILL["dependencies"]}
    reached, ahead = set(), ["smidgen"]
    while ahead:
        name = ahead.pop()
        if name not in reached:
            reached.add(name)
            ahead += needs[name]
    assert reached == {"smidgen", *COMPONENTS}
    assert BILL["metadata"]["component"]["version"] == PROJECT["version"]


def test_it_names_no_address_but_its_schema() -> None:
    assert set(re.findall(r"\w+://[^\"]*", TEXT)) == {"http://cyclonedx.org/schema/bom-1.6.schema.json"}
    assert re.findall(r"\b(?:files|index|registry|mirror|proxy)\b[^\"]*\.\w{2,}", TEXT) == []


def test_it_is_the_same_each_time(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.support.bill_of_materials", str(tmp_path / "bom.json")]
    subprocess.run(command, cwd=ROOT, check=True, timeout=120, env={"PYTHONHASHSEED": "7"})
    assert (tmp_path / "bom.json").read_text(encoding="utf-8") == TEXT
