"""Examples of docs/clients parse, and read fields that the schemas of events have."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest
import tree_sitter_go
import tree_sitter_typescript
from tree_sitter import Language, Node, Parser

from tests.support.paths import ROOT

EXAMPLES = ROOT / "docs" / "clients"
SCHEMAS = "\n".join(path.read_text() for path in (ROOT / "docs" / "schemas").glob("regression-*.json"))
LANGUAGES = {
    "subscribe.go": Language(tree_sitter_go.language()),
    "subscribe.ts": Language(tree_sitter_typescript.language_typescript()),
}
FIELDS = {
    "subscribe.go": re.compile(r'`json:"(\w+)"`'),
    "subscribe.ts": re.compile(r"^  (\w+): [\w\"| \[\]]+;", re.MULTILINE),
}


def mistakes(node: Node) -> list[tuple[int, int]]:
    """Return where a tree has what its grammar does not know."""
    found = [node.start_point] if node.is_error or node.is_missing else []
    return [
        *((row, column) for row, column in found),
        *(m for child in node.children for m in mistakes(child)),
    ]


@pytest.mark.parametrize("name", LANGUAGES)
def test_an_example_parses(name: str) -> None:
    parser = Parser(LANGUAGES[name])
    content = (EXAMPLES / name).read_bytes()
    assert mistakes(parser.parse(content).root_node) == []
    assert mistakes(parser.parse(content.replace(b") {", b") {{", 1)).root_node)


@pytest.mark.skipif(not shutil.which("gofmt"), reason="Go is not installed")
def test_go_takes_the_example_and_has_nothing_to_format() -> None:
    found = subprocess.run(["gofmt", "-l", EXAMPLES / "subscribe.go"], capture_output=True, text=True)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


@pytest.mark.parametrize("name", FIELDS)
def test_an_example_reads_fields_that_there_are(name: str) -> None:
    known = set(re.findall(r'"(\w+)": \{', SCHEMAS))
    used = set(FIELDS[name].findall((EXAMPLES / name).read_text()))
    assert len(used) > 12
    assert used - known == set()


@pytest.mark.parametrize("name", ["subscribe.go", "subscribe.ts"])
def test_an_example_knows_the_three_types(name: str) -> None:
    types = {
        json.loads(path.read_text())["properties"]["type"]["const"]
        for path in (ROOT / "docs" / "schemas").glob("regression-*.json")
    }
    text = (EXAMPLES / name).read_text()
    assert set(re.findall(r'"(smidgen\.regression\.\w+)"', text)) == types
