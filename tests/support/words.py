"""Lint of words that docs/glossary.md rules out, in documents, help texts and code."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path

import click

from pipeline.cli import COMMANDS, smidgen
from tests.support.paths import ROOT

CODE = ("pipeline", "agents", "loadgen")
GENERATED = frozenset({"docs/accuracy.md", "docs/accuracy-world.md", "docs/accuracy-hosts.md"})
"""Written by code, whose texts are counted there."""

KEPT = frozenset({"grown", "no culprit"})
"""Fields that others read or write, which keep their name: of scans and events, and of scenarios."""

SEARCHING = frozenset({"pipeline/commands/dlq.py"})
"""Where a person may search reasons of dead letters for a text."""

_SELF = frozenset({"tests/support/words.py", "tests/unit/project/test_words.py"})
"""The lint and its test, which need the words as examples."""

_GLOSSARY = ROOT / "docs" / "glossary.md"
_NO_WORDS = "## Words that are not used"


@dataclass(frozen=True)
class Ban:
    """Words of one row of the glossary that are not used.

    Attributes:
        words: the words, in lower case; the first names the row.
        instead: what to write.
        names_only: whether they are common English and are ruled out as parts of identifiers alone.
        phrases: longer texts with them that may stand.
        files: beginnings of paths in which they may stand.
    """

    words: tuple[str, ...]
    instead: str
    names_only: bool
    phrases: tuple[str, ...]
    files: tuple[str, ...]

    def count(self, text: str) -> int:
        """Count the words in a text, leaving out the phrases that may stand."""
        lowered = _lowered(text)
        if not any(word in lowered for word in self.words):
            return 0
        for phrase in self.phrases:
            lowered = re.sub(rf"(?<!\w){re.escape(phrase)}(?!\w)", " ", lowered)
        return sum(len(re.findall(rf"\b{re.escape(word)}\b", lowered)) for word in self.words)


@lru_cache(maxsize=2)
def _lowered(text: str) -> str:
    """Return a text in lower case on one line; cached, since each row is counted in the same two texts."""
    return " ".join(text.lower().split())


def bans() -> tuple[Ban, ...]:
    """Read the table of docs/glossary.md."""
    table = _GLOSSARY.read_text(encoding="utf-8").split(_NO_WORDS)[1]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    entries = []
    for row in rows:
        if len(row) == 4 and row[0] not in ("not", "---"):
            words, instead, where, exceptions = row
            allowed = _listed(exceptions)
            entries.append(
                Ban(
                    words=tuple(_listed(words)),
                    instead=instead,
                    names_only=where == "names",
                    phrases=tuple(phrase for phrase in allowed if "/" not in phrase),
                    files=tuple(phrase for phrase in allowed if "/" in phrase),
                )
            )
    return tuple(entries)


def documents() -> dict[str, str]:
    """Return the prose of every document by its path: code spans and web addresses are left out.

    So is the glossary's table of words that are not used. Fenced blocks stay in, for their comments.
    """
    paths = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}
    name = str(_GLOSSARY.relative_to(ROOT))
    texts[name] = texts[name].split(_NO_WORDS)[0]
    return {path: _prose(text) for path, text in texts.items() if path not in GENERATED}


def help_texts() -> dict[str, str]:
    """Return the help of every command and its options, by the command."""
    return dict(_helped(smidgen, "smidgen"))


def names(tree: ast.Module) -> set[str]:
    """Return the identifiers of a module, as words: ``LetterBox.told_at`` gives "letter box", "told at".

    Names of imported modules are left out, such as ``click.echo``.
    """
    modules = {
        alias.asname or alias.name
        for node in _nodes(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    identifiers: set[str] = set()
    for node in _nodes(tree):
        if isinstance(node, ast.Name):
            identifiers.add(node.id)
        elif isinstance(node, ast.Attribute):
            if not (isinstance(node.value, ast.Name) and node.value.id in modules):
                identifiers.add(node.attr)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            identifiers.add(node.name)
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            identifiers.add(node.arg)
    return {split_name(name) for name in identifiers}


@lru_cache(maxsize=1)
def _nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Return the nodes of a tree; cached, since a tree is searched more than once."""
    return tuple(ast.walk(tree))


def split_name(name: str) -> str:
    """Return the words of an identifier in lower case."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_+", " ", name)
    return spaced.strip().lower()


def prose(source: str, tree: ast.Module) -> tuple[list[str], list[str]]:
    """Return a module's docstrings and comments, and its other texts of more than one word."""
    documented = {
        id(statement.value)
        for node in _nodes(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in node.body
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    }
    strings = [
        node for node in _nodes(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    comments = [
        token.string
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    ]
    documented_texts = [str(node.value) for node in strings if id(node) in documented]
    texts = [str(node.value) for node in strings if id(node) not in documented and " " in str(node.value)]
    return [*documented_texts, *comments], texts


def parsed_reasons(tree: ast.Module) -> Iterator[int]:
    """Yield the lines in which a reason is compared, searched or taken apart."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            empty = any(isinstance(side, ast.Constant) and not side.value for side in node.comparators)
            if not empty and any(_is_reason(side) for side in (node.left, *node.comparators)):
                yield node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            parsing = ("startswith", "endswith", "split", "partition", "rpartition", "removeprefix", "find")
            if _is_reason(node.func.value) and node.func.attr in parsing:
                yield node.lineno
            of_patterns = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
            if of_patterns and any(_is_reason(argument) for argument in node.args):
                yield node.lineno


def words_in_code() -> dict[str, list[str]]:
    """Return the first word of each row of the glossary → the files with it, and how often."""
    rows = bans()
    files: dict[str, list[str]] = {ban.words[0]: [] for ban in rows}
    for path, tree, source in sources((*CODE, "tests")):
        if path in _SELF:
            continue
        named = " . ".join([*names(tree) - KEPT, split_name(Path(path).stem)])
        written = " . ".join(chain(*prose(source, tree)))
        for ban in rows:
            if not path.startswith(ban.files or ("\0",)):
                count = ban.count(named) + (0 if ban.names_only else ban.count(written))
                if count:
                    files[ban.words[0]].append(f"{path}: {count}")
    return files


def reasons_in_code() -> list[str]:
    """Return where a reason is parsed, as ``path:line``."""
    return [
        f"{path}:{line}"
        for path, tree, _ in sources(CODE, "reason")
        if path not in SEARCHING
        for line in parsed_reasons(tree)
    ]


def sources(folders: Iterable[str], holding: str = "") -> Iterator[tuple[str, ast.Module, str]]:
    """Yield path, syntax tree and text of each module in whose text something stands."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            if holding in source:
                yield str(path.relative_to(ROOT)), ast.parse(source), source


def _is_reason(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "error":
        return False  # of an exception of the standard library
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name == "reason"


def _prose(text: str) -> str:
    unlinked = re.sub(r"\]\([^)]*\)|https?://\S+", "]", text)
    return re.sub(r"(?<!`)`[^`\n]+`(?!`)", "`", unlinked)


def _listed(cell: str) -> list[str]:
    return [part.strip().lower() for part in cell.split(",") if part.strip()]


def _helped(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    options = [getattr(parameter, "help", None) or "" for parameter in command.params]
    yield name, " ".join([command.help or "", command.short_help or "", *options])
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for sub in command.list_commands(context):
            subcommand = command.get_command(context, sub)
            assert subcommand
            yield from _helped(subcommand, f"{name} {sub}")
    if command is smidgen:
        yield "commands", " ".join(text for _, text in COMMANDS.values())
