"""Words that docs/glossary.md rules out are not used, in documents, help texts and code."""

from __future__ import annotations

import ast

import pytest

from tests.support import words
from tests.support.cases import for_every
from tests.support.paths import ROOT
from tests.support.words import Ban

BANS = words.bans()
EVERYWHERE = [ban for ban in BANS if not ban.names_only]


def ban(word: str) -> Ban:
    return next(row for row in BANS if word in row.words)


@pytest.fixture(scope="module")
def in_code() -> dict[str, list[str]]:
    return words.words_in_code()


def test_the_glossary_lists_words() -> None:
    assert len(BANS) > 10
    assert all(row.words and row.instead for row in BANS)


@pytest.mark.parametrize(
    ("word", "text", "count"),
    [
        pytest.param("told", "It was told twice, and told again.", 2, id="every time"),
        pytest.param("told", "untold stories", 0, id="whole words"),
        pytest.param("letter", "A dead letter, and a\nLETTER.", 1, id="phrases that may stand"),
        pytest.param("letter", "dead\nletters", 0, id="phrases over lines"),
        pytest.param("old form", "an old form", 1, id="two words"),
    ],
)
def test_words_are_counted(word: str, text: str, count: int) -> None:
    assert ban(word).count(text) == count


def test_names_are_split_into_words() -> None:
    tree = ast.parse("class LetterBox:\n    def told_at(self, one): self._likeness = one")
    assert words.names(tree) >= {"letter box", "told at", "likeness", "one"}


def test_names_of_imported_modules_are_theirs() -> None:
    assert words.names(ast.parse("import click\nclick.echo(box.told)")) == {"click", "box", "told"}


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        pytest.param("if drop.reason == GROWN: pass", [1], id="compared"),
        pytest.param("if 'grown' in drop.reason: pass", [1], id="searched"),
        pytest.param("if reason.startswith('x'): pass", [1], id="begun"),
        pytest.param("re.match('x', drop.reason)", [1], id="matched"),
        pytest.param("if drop.reason == '': pass", [], id="whether there is one"),
        pytest.param("print(drop.reason)", [], id="shown"),
    ],
)
def test_parsed_reasons_are_seen(code: str, lines: list[int]) -> None:
    assert list(words.parsed_reasons(ast.parse(code))) == lines


@pytest.mark.slow
@for_every("path", words.documents())
def test_documents_use_the_words_of_the_glossary(path: str) -> None:
    text = words.documents()[path]
    found = {
        f"{row.words[0]} → {row.instead}": [line for line in text.splitlines() if row.count(line)]
        for row in EVERYWHERE
        if row.count(text)
    }
    assert found == {}


def test_help_uses_the_words_of_the_glossary() -> None:
    texts = words.help_texts()
    assert len(texts) > 30
    found = [
        (command, row.words[0]) for command, text in texts.items() for row in EVERYWHERE if row.count(text)
    ]
    assert found == []


@for_every("word", [row.words[0] for row in BANS])
def test_code_uses_the_words_of_the_glossary(word: str, in_code: dict[str, list[str]]) -> None:
    assert not in_code[word], f"write {ban(word).instead}"


def test_fields_that_keep_their_name_exist() -> None:
    fields = ("pipeline/messages/schema/scans.py", "loadgen/fleet/scenario.py")
    trees = [ast.parse((ROOT / path).read_text("utf-8")) for path in fields]
    assert set().union(*map(words.names, trees)) >= words.KEPT


def test_no_reason_is_parsed() -> None:
    assert words.reasons_in_code() == []
