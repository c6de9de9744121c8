from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.counting.names import Naming, Namings
from pipeline.model.errors import ConfigError
from pipeline.settings.names import read_namings

FILE = """
default:
  without: [go-closure]
services:
  shop:
    patterns:
      - {match: '_gen[0-9a-f]+', replace: ''}
  legacy:
    rules: false
"""


def test_without_a_file_all_rules_hold() -> None:
    assert read_namings(None) == Namings()


def test_services_inherit_from_the_default(tmp_path: Path) -> None:
    path = tmp_path / "names.yaml"
    path.write_text(FILE)
    namings = read_namings(path)
    assert namings.of("other").symbol("main.main.func1") == "main.main.func1"
    assert namings.of("shop").symbol("main.main.func1") == "main.main.func1"
    assert namings.of("shop").symbol("total_gen12ab(int)") == "total"
    assert namings.of("legacy") == Naming(rules=())
    assert len({namings.of(name).version for name in ("other", "shop", "legacy")}) == 3


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("default: {without: [gone]}", "no rule 'gone'; rules are"),
        ("services: {a: {patterns: [{match: '('}]}}", "services.a: '\\(' is no regular expression"),
        ("services: {a: {patterns: [{replace: x}]}}", "patterns.0.match"),
        ("other: 1", "other: unknown key"),
        ("default: {rules: maybe}", "default.rules"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "names.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=complaint):
        read_namings(path)
