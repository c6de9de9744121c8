"""Examples of docs/clients parse, compile and run, and read fields that the schemas of events have."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tree_sitter_go
import tree_sitter_typescript
from tree_sitter import Language, Node, Parser

from tests.support.alert_events import detected, encoded, resolved, updated
from tests.support.paths import ROOT

EXAMPLES = ROOT / "docs" / "clients"
SCHEMAS = "\n".join(path.read_text() for path in (ROOT / "docs" / "schemas").glob("regression-*.json"))
LANGUAGES = {
    ".go": Language(tree_sitter_go.language()),
    ".ts": Language(tree_sitter_typescript.language_typescript()),
}
EXAMPLE_NAMES = sorted(path.name for path in EXAMPLES.iterdir() if path.suffix in LANGUAGES)
FIELDS = {
    "event.go": re.compile(r'`json:"(\w+)"`'),
    "event.ts": re.compile(r"^  (\w+): [\w\"| \[\]]+;", re.MULTILINE),
}


def mistakes(node: Node) -> list[tuple[int, int]]:
    """Return where a tree has what its grammar does not know."""
    found = [node.start_point] if node.is_error or node.is_missing else []
    return [
        *((row, column) for row, column in found),
        *(m for child in node.children for m in mistakes(child)),
    ]


@pytest.mark.parametrize("name", EXAMPLE_NAMES)
def test_an_example_parses(name: str) -> None:
    parser = Parser(LANGUAGES[Path(name).suffix])
    content = (EXAMPLES / name).read_bytes()
    assert mistakes(parser.parse(content).root_node) == []
    assert mistakes(parser.parse(content.replace(b") {", b") {{", 1)).root_node)


needs_go = pytest.mark.skipif(not shutil.which("go"), reason="Go is not installed: https://go.dev/dl")
needs_node = pytest.mark.skipif(not shutil.which("node"), reason="Node is not installed: https://nodejs.org")
needs_tsc = pytest.mark.skipif(not shutil.which("tsc"), reason="npm install -g typescript checks types here")


@needs_go
def test_go_has_nothing_to_format() -> None:
    found = subprocess.run(["gofmt", "-l", *EXAMPLES.glob("*.go")], capture_output=True, text=True)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


@needs_tsc
def test_types_of_the_typescript_example_fit() -> None:
    command = ["tsc", "--noEmit", "--strict", "--target", "es2022", str(EXAMPLES / "event.ts")]
    assert subprocess.run(command, capture_output=True, text=True).stdout == ""


def messages() -> str:
    """Return events, and what is none, one a line: each message is as the pipeline writes it."""
    metric: dict[str, Any] = {
        "metric": "latency",
        "metric_kind": "service",
        "delta": -12.5,
        "relative": -0.25,
    }
    new: dict[str, Any] = {"metric": "shop.né", "relative": None, "root_causes": []}
    events = [detected(), detected(), detected("r2", **metric), detected("r3", **new)]
    lines = [encoded(event).decode() for event in (*events, updated("r1"), resolved("r1"))]
    return "\n".join([*lines[:3], "{", "null", *lines[3:]]) + "\n"


SHOWN = """shop shop.pricing.total +2.0000% of CPU (+33.3%)
  Rules may be nested by Ada (0.91)
shop latency -12.5000 (-25.0%)
  Rules may be nested by Ada (0.91)
shop shop.né +2.0000% of CPU
r1 has changed
r1 is resolved
"""


def run(command: list[str], cwd: Path) -> None:
    found = subprocess.run(command, cwd=cwd, input=messages(), capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, SHOWN), found.stderr
    wrong = [line for line in found.stderr.splitlines() if re.search("line [45]: ", line)]
    assert len(wrong) == len(found.stderr.splitlines()) == 2


@needs_go
def test_the_go_example_shows_each_event_once() -> None:
    run(["go", "run", "pipe.go", "event.go"], EXAMPLES)


@needs_node
def test_the_typescript_example_shows_each_event_once(tmp_path: Path) -> None:
    for name in ("event", "pipe"):
        plain = without_types((EXAMPLES / f"{name}.ts").read_bytes())
        (tmp_path / f"{name}.mjs").write_bytes(plain.replace(b'/event.ts"', b'/event.mjs"'))
    run(["node", "pipe.mjs"], tmp_path)


TYPES = (
    *("interface_declaration", "type_alias_declaration", "type_annotation", "type_arguments"),
    *("accessibility_modifier", "readonly"),
)


def without_types(source: bytes) -> bytes:
    """Return TypeScript as JavaScript, as Node from 22 on takes it by itself: types become spaces."""
    found = bytearray(source)

    def erase(node: Node) -> None:
        begin, end = node.start_byte, node.end_byte
        if node.type == "as_expression":
            begin = node.children[0].end_byte
        elif node.type == "export_statement" and node.children[1].type in TYPES:
            pass
        elif node.type not in TYPES:
            for child in node.children:
                erase(child)
            return
        for child in node.children[:1] if node.type == "as_expression" else ():
            erase(child)
        found[begin:end] = re.sub(rb"[^\n]", b" ", source[begin:end])

    erase(Parser(LANGUAGES[".ts"]).parse(source).root_node)
    return bytes(found)


@pytest.mark.parametrize("name", FIELDS)
def test_an_example_reads_fields_that_there_are(name: str) -> None:
    known = set(re.findall(r'"(\w+)": \{', SCHEMAS))
    used = set(FIELDS[name].findall((EXAMPLES / name).read_text()))
    assert len(used) > 12
    assert used - known == set()


@pytest.mark.parametrize("name", FIELDS)
def test_an_example_knows_the_three_types(name: str) -> None:
    types = {
        json.loads(path.read_text())["properties"]["type"]["const"]
        for path in (ROOT / "docs" / "schemas").glob("regression-*.json")
    }
    text = (EXAMPLES / name).read_text()
    assert set(re.findall(r'"(smidgen\.regression\.\w+)"', text)) == types
