from __future__ import annotations

import string
from pathlib import Path
from typing import Annotated, Optional

import pytest
from pydantic import Field

from pipeline.files.validation import (
    MAX_YAML_BYTES,
    MAX_YAML_DEPTH,
    MAX_YAML_NODES,
    StrictModel,
    read_yaml,
    validate,
)
from pipeline.model.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "x.yaml"


def laughs(levels: int) -> str:
    """Each level holds the one before ten times: 10 ** levels values of a few hundred bytes."""
    names = string.ascii_lowercase
    first = f"a: &a [{', '.join(['x'] * 10)}]\n"
    rest = (f"{names[n]}: &{names[n]} [{', '.join(['*' + names[n - 1]] * 10)}]\n" for n in range(1, levels))
    return first + "".join(rest)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("[" * 100_000, f":1: nested deeper than {MAX_YAML_DEPTH}", id="lists"),
        pytest.param("{" * 100_000, f":1: nested deeper than {MAX_YAML_DEPTH}", id="objects"),
        pytest.param("- " * 2000 + "a", f":1: nested deeper than {MAX_YAML_DEPTH}", id="dashes"),
        pytest.param("? " * 2000, f":1: nested deeper than {MAX_YAML_DEPTH}", id="keys"),
        pytest.param(laughs(9), f":7: more than {MAX_YAML_NODES} values", id="aliases of aliases"),
        pytest.param(
            laughs(9).replace("[", "{<<: [").replace("]", "]}"),
            f":7: more than {MAX_YAML_NODES} values",
            id="merges of merges",
        ),
        pytest.param("&a [*a]", ":1: an alias stands within what it names", id="list in itself"),
        pytest.param("<<: &x {<<: *x}", ":1: an alias stands within what it names", id="merge in itself"),
        pytest.param("a: 2001-99-99", ":1: not a timestamp", id="no such day"),
        pytest.param("a: 2001-01-01T00:00:00+99:99", ":1: not a timestamp", id="no such offset"),
        pytest.param("!!timestamp x", ":1: not a timestamp", id="timestamp"),
        pytest.param("!!bool x", ":1: not a bool", id="bool"),
        pytest.param("!!int x", ":1: not a int", id="int"),
        pytest.param("!!int", ":1: not a int", id="empty int"),
        pytest.param("!!float x", ":1: not a float", id="float"),
        pytest.param("a: 0b_", ":1: not a int", id="bits"),
        pytest.param("a: 0x_", ":1: not a int", id="hexadecimal"),
        pytest.param("!!map x", ":1: expected a mapping node", id="map"),
        pytest.param("!!set [a]", ":1: expected a mapping node", id="set"),
        pytest.param("a: " + "9" * 5000, ":1: not a int", id="thousands of digits"),
        pytest.param("a: 0x" + "f" * 5000, ":1: a number beyond 64 bits", id="hexadecimal digits"),
        pytest.param("\n\na: 9223372036854775808", ":3: a number beyond 64 bits", id="one too large"),
        pytest.param(r'"\ud800"', ":1: a text with half a character", id="lone surrogate"),
        pytest.param(r'"\U00110000"', ": an escape stands for no character", id="beyond Unicode"),
        pytest.param(r'"\UFFFFFFFF"', ": an escape stands for no character", id="beyond an integer"),
        pytest.param("!!python/object/apply:os.getcwd []", "could not determine a constructor", id="Python"),
        pytest.param("a: 1\na: 2", ":2: key 'a' stands twice", id="key twice"),
        pytest.param("a: {1: 2, true: 3}", ":1: two keys are the same value", id="keys that are equal"),
    ],
)
def test_hostile_files_are_refused_in_one_line(file: Path, text: str, reason: str) -> None:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_yaml(file)
    assert str(caught.value).startswith(str(file))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_too_large(file: Path) -> None:
    with file.open("wb") as sparse:
        sparse.truncate(MAX_YAML_BYTES + 1)
    with pytest.raises(ConfigError, match="larger than 16 MiB"):
        read_yaml(file)


def test_a_file_that_never_ends() -> None:
    with pytest.raises(ConfigError, match="larger than 16 MiB"):
        read_yaml(Path("/dev/zero"))


def test_what_people_write_is_read(file: Path) -> None:
    depth = MAX_YAML_DEPTH - 2
    text = "a: &a [1, 2]\nb: *a\nc: {<<: {x: 1}, y: 2}\nd: 2026-01-31\ne: 0x1F\nf: -9223372036854775808\n"
    file.write_text(text + "g: " + "[" * depth + "]" * depth, encoding="utf-8")
    read = read_yaml(file)
    assert read["b"] == [1, 2]
    assert read["c"] == {"x": 1, "y": 2}
    assert read["e"] == 31
    assert read["f"] == -(2**63)


def test_a_complaint_does_not_repeat_a_long_value() -> None:
    class Model(StrictModel):
        name: str = Field(pattern="^a$")

    with pytest.raises(ConfigError) as caught:
        validate(Model, {"name": {"x" * 100_000: 1}}, "where")
    assert len(str(caught.value)) < 1000


class Row(StrictModel):
    size: int = 0


class Table(StrictModel):
    row: Annotated[Row | None, Field(alias="line")] = None
    rows: tuple[Row, ...] | None = None
    old: Optional[list[Row]] = None  # noqa: UP045 - typing's union is another type
    named: dict[str, Annotated[Row, Field()]] = {}
    groups: dict[str, tuple[Row, ...]] = {}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        pytest.param({"sise": 1}, "sise: unknown key; known keys are groups, line, named, old", id="top"),
        pytest.param({"line": {"sise": 1}}, "line.sise: unknown key; known keys are size", id="optional"),
        pytest.param({"rows": [{}, {"sise": 1}]}, "rows.1.sise: unknown key; known keys are size", id="list"),
        pytest.param({"old": [{"sise": 1}]}, "old.0.sise: unknown key; known keys are size", id="union"),
        pytest.param({"named": {"rows": {"sise": 1}}}, "named.rows.sise: unknown key; known keys are size",
                     id="mapping whose key is the name of a field"),
        pytest.param({"groups": {"a": [{"sise": 1}]}}, "groups.a.0.sise: unknown key; known keys are size",
                     id="mapping of lists"),
        pytest.param([], "should be a mapping", id="list for the file"),
        pytest.param({"line": []}, "line: should be a mapping", id="list for a model"),
        pytest.param({"named": []}, "named: should be a mapping", id="list for a mapping"),
        pytest.param({"rows": {}}, "rows: should be a list", id="mapping for a list"),
        pytest.param({"old": "x"}, "old: should be a list", id="text for a list"),
    ],
)  # fmt: skip
def test_a_wrong_key_or_kind_is_named(raw: object, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate(Table, raw, "where")
    assert str(caught.value).startswith(f"where: {message}")
