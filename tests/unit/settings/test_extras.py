from __future__ import annotations

import ast
import sys

import pytest

from pipeline.model.errors import ConfigError
from pipeline.settings.extras import installation_hint, require
from tests.support.paths import ROOT

OURS = {"pipeline", "agents", "loadgen", "smidgen"}
COME_ALONG = {"markupsafe": "jinja2", "multidict": "aiohttp", "pydantic_core": "pydantic", "yarl": "aiohttp"}
OF_THE_APPLICATION = {"flask", "opentelemetry"}  # that is observed from inside


def imported() -> set[str]:
    """Return the packages of others that sources import."""
    modules: set[str] = set()
    for folder in ("pipeline", "agents"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    modules |= {alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    modules.add(node.module)
    return {module.partition(".")[0] for module in modules} - OURS - set(sys.stdlib_module_names)


def test_every_import_is_of_the_base_or_an_extra() -> None:
    modules = {COME_ALONG.get(module, module) for module in imported() - OF_THE_APPLICATION}
    assert [module for module in sorted(modules) if installation_hint(module) is None] == []


@pytest.mark.parametrize(
    ("module", "hint"),
    [
        ("orjson", "orjson is not installed: pip install smidgen"),
        ("scipy.stats", "scipy is not installed: pip install 'smidgen[server]'"),
        ("jwt", "pyjwt is not installed: pip install 'smidgen[server]'"),
        ("grpc", "grpcio is not installed: pip install 'smidgen[grpc]'"),
        ("sklearn", "scikit-learn is not installed: pip install 'smidgen[forest]'"),
        ("chdb", "chdb is not installed: pip install 'smidgen[embedded]'"),
        ("no_such_package", None),
        ("pipeline.no_such_module", None),
    ],
)
def test_what_to_install_for_a_module(module: str, hint: str | None) -> None:
    assert installation_hint(module) == hint


def test_a_command_that_needs_more_names_the_larger_extra() -> None:
    assert str(installation_hint("numpy", "embedded")).endswith("'smidgen[embedded]'")
    assert str(installation_hint("grpc", "embedded")).endswith("'smidgen[grpc]'")


def test_what_is_required_is_there_or_named() -> None:
    require("numpy")
    with pytest.raises(ConfigError, match="no_such_package is not installed"):
        require("no_such_package")
