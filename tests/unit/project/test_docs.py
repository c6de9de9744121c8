"""The documents name paths, modules and figures that exist, and keep to their sizes."""

from __future__ import annotations

import importlib.util
import re

import pytest

from pipeline.model.steps import BY_KEY
from tests.support import command_reference, step_tables
from tests.support.cases import for_every
from tests.support.paths import ROOT

DOCUMENTS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
}
README = DOCUMENTS["README.md"]
ARCHITECTURE = DOCUMENTS["docs/architecture.md"]

PATH = re.compile(r"(?<![\w./-])((?:pipeline|agents|loadgen|tests|docs|\.ci)/[\w./-]*\w/?)")
MODULE = re.compile(r"\b((?:pipeline|agents|loadgen|tests)(?:\.[a-z_]\w*)+)\b")


def named_paths(text: str) -> set[str]:
    """Return the paths of the repository that a document names in code spans and blocks."""
    spans = re.findall(r"`([^`\n]+)`", text)
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return {path for code in (*spans, *blocks) for path in PATH.findall(code)}


@for_every("document", DOCUMENTS)
def test_paths_exist(document: str) -> None:
    assert {path for path in named_paths(DOCUMENTS[document]) if not (ROOT / path).exists()} == set()


@for_every("document", DOCUMENTS)
def test_modules_exist(document: str) -> None:
    named = set(MODULE.findall(DOCUMENTS[document]))
    assert {name for name in named if not _is_module(name)} == set()


def test_links_lead_somewhere() -> None:
    broken = []
    for name, text in DOCUMENTS.items():
        for link, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", text):
            if "://" in link:
                continue
            target = (ROOT / name).parent / link if link else ROOT / name
            if not target.exists():
                broken.append((name, link))
            elif anchor and target.suffix == ".md" and anchor not in _anchors(target.read_text("utf-8")):
                broken.append((name, f"{link}#{anchor}"))
    assert broken == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, ahead = set(), ["README.md"]
    while ahead:
        name = ahead.pop()
        if name in DOCUMENTS and name not in reached:
            reached.add(name)
            for link in re.findall(r"\]\(([^)#]+)", DOCUMENTS[name]):
                target = ((ROOT / name).parent / link).resolve()
                if target.is_relative_to(ROOT):
                    ahead.append(str(target.relative_to(ROOT)))
    assert set(DOCUMENTS) - reached == set()


def test_the_readme_is_short_and_begins_with_the_two_commands() -> None:
    lines = README.splitlines()
    assert len(lines) <= 120
    first = "\n".join(lines[:12])
    assert "make demo" in first
    assert "make test" in first


@pytest.mark.parametrize("page", ["docs/accuracy.md", "docs/accuracy-world.md"])
@pytest.mark.parametrize(
    ("claim", "row"),
    [
        ("events that are right", "precision"),
        ("steps of eight standard errors that are reported", "detectable"),
        ("slow rises that are reported", "gradual"),
        ("true change first among the suspects", "top 1"),
        ("refactorings that have an event", "cost shifts"),
        ("events that report a regression again", "repeated"),
    ],
)
def test_figures_of_the_readme_are_those_of_the_records(claim: str, row: str, page: str) -> None:
    record = DOCUMENTS[page]
    all_runs = record[record.index("## All runs together") :]
    lines = [line for line in all_runs.splitlines() if line.startswith(f"| {row} |")]
    shown = re.search(rf"^\| {re.escape(claim)} \| (.+) \| (.+) \|$", README, re.MULTILINE)
    assert shown
    figure = shown[1 if page == "docs/accuracy.md" else 2]
    if figure == "–":
        assert lines == []
        return
    hits, of = (int(number.replace(",", "")) for number in re.findall(r"([\d,]+) of ([\d,]+)", lines[0])[0])
    assert figure.endswith(" %")
    digits = len(figure.removesuffix(" %").partition(".")[2])
    assert round(100 * hits / of, digits) == float(figure.removesuffix(" %"))


@for_every("name", sorted(path.name for path in (ROOT / "docs" / "decisions").glob("*.md")))
def test_a_decision_is_half_a_page_with_its_four_parts(name: str) -> None:
    text = DOCUMENTS[f"docs/decisions/{name}"]
    if name == "README.md":
        records = {path.name for path in (ROOT / "docs" / "decisions").glob("*.md")} - {"README.md"}
        assert set(re.findall(r"\]\(([\w-]+\.md)\)", text)) == records
        return
    parts = re.findall(r"^\*\*(.+?)\.\*\*", text, re.MULTILINE)
    assert parts == ["Context", "Decision", "Consequence", "What was tried"]
    assert len(text.split()) <= 330


@pytest.mark.skipif(
    not (ROOT / "pipeline" / "analysis").exists(), reason="the page has the rooms of the move"
)
@pytest.mark.parametrize("folder", ["pipeline", "agents", "loadgen"])
def test_the_architecture_names_every_room(folder: str) -> None:
    section = re.split(r"^##", ARCHITECTURE.split(f"### {folder}/\n")[1], flags=re.MULTILINE)[0]
    named = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert sorted(named) == sorted(path.parent.name for path in (ROOT / folder).glob("*/__init__.py"))


@for_every("test", sorted(set(re.findall(r"`(tests/[\w/]+\.py::\w+)`", ARCHITECTURE))))
def test_the_tests_that_the_architecture_cites_exist(test: str) -> None:
    path, name = test.split("::")
    assert re.search(rf"^\s*(async )?def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)


def test_the_representations_of_a_sample_are_types_of_their_files() -> None:
    linked = r"^\| [^|]+ \| ([^|]+) \| \[`([\w/.]+)`\]\(\.\./\2\) \| [^|]+ \|$"
    rows = re.findall(linked, ARCHITECTURE, re.MULTILINE)
    assert len(rows) > 10
    for representation, path in rows:
        for name in re.findall(r"`([A-Z]\w+)`", representation):
            owners = [*(ROOT / "pipeline" / "model").glob("*.py"), ROOT / path]
            assert any(f"class {name}" in module.read_text(encoding="utf-8") for module in owners), name


def test_the_steps_in_the_tables_are_those_of_the_registry() -> None:
    assert step_tables.PAGE.read_text(encoding="utf-8") == step_tables.step_page(), "run: make schemas"


def test_every_step_of_the_registry_has_a_row_on_what_it_is_worth() -> None:
    page = (ROOT / "docs" / "measured" / "steps.md").read_text(encoding="utf-8")
    assert set(BY_KEY) <= set(re.findall(r"`(\w+)`", page))


def test_no_document_is_a_file_of_results() -> None:
    large = {
        str(path.relative_to(ROOT)): lines
        for path in (ROOT / "docs").rglob("*")
        if path.suffix in (".md", ".json", ".yaml", ".csv")
        and path != command_reference.PAGE
        and (lines := len(path.read_text(encoding="utf-8").splitlines())) > 1000
    }
    assert large == {}


def _is_module(name: str) -> bool:
    """Return whether a dotted name is a module, or something in one."""
    parts = name.split(".")
    for end in range(len(parts), 1, -1):
        try:
            if importlib.util.find_spec(".".join(parts[:end])):
                return end >= len(parts) - 2
        except ModuleNotFoundError:
            continue
    return False


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
