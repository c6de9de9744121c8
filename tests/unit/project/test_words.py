"""Words that docs/glossary.md rules out are not used; of those left in code there may only be fewer."""

from __future__ import annotations

import ast

import pytest

from tests.support import words
from tests.support.words import Ban

BANS = words.bans()
EVERYWHERE = [ban for ban in BANS if not ban.names_only]


def ban(word: str) -> Ban:
    return next(row for row in BANS if word in row.words)


@pytest.fixture(scope="module")
def counted() -> tuple[dict[str, dict[str, int]], dict[str, list[str]]]:
    return words.left_in_code()


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


@pytest.mark.parametrize("path", words.documents())
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


@pytest.mark.parametrize("word", [row.words[0] for row in BANS])
def test_code_has_no_more_of_them(
    word: str, counted: tuple[dict[str, dict[str, int]], dict[str, list[str]]]
) -> None:
    counts, files = counted
    allowed = words.read_left().get(word, {})
    more = {kind: n for kind, n in counts[word].items() if n > allowed.get(kind, 0)}
    assert not more, (
        f"more of {word!r} than {dict(allowed)}; write {ban(word).instead}. It is in {files[word]}"
    )


def test_no_further_reason_is_parsed() -> None:
    found = words.reasons_in_code()
    assert len(found) <= words.read_left()["parsed reasons"]["code"], found
