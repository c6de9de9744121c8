"""The lint of words: what docs/glossary.md rules out, looked for in documents, help texts and code.

``python -m tests.support.words`` rewrites the table of what is left, after words were replaced.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import click

from pipeline.cli import COMMANDS, smidgen
from tests.support.paths import ROOT

LEFT = ROOT / "tests" / "unit" / "project" / "words_left.json"
"""Word → kind of text → how often it may still stand in code; and how often a reason may still be parsed."""

CODE = ("pipeline", "agents", "loadgen")
GENERATED = frozenset({"docs/accuracy.md"})
"""Written by code, whose texts are counted there."""

SEARCHING = frozenset({"pipeline/commands/dlq.py"})
"""Where a person may search reasons of dead letters for a text."""

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
            lowered = re.sub(rf"(?<!\w){re.escape(phrase)}\b", " ", lowered)
        return sum(len(re.findall(rf"\b{re.escape(word)}\b", lowered)) for word in self.words)


@lru_cache(maxsize=4)
def _lowered(text: str) -> str:
    """Return a text in lower case on one line; each is searched for every row."""
    return " ".join(text.lower().split())


def bans() -> tuple[Ban, ...]:
    """Read the table of docs/glossary.md."""
    table = _GLOSSARY.read_text(encoding="utf-8").split(_NO_WORDS)[1]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    found = []
    for row in rows:
        if len(row) == 4 and row[0] not in ("not", "---"):
            words, instead, where, exceptions = row
            allowed = _listed(exceptions)
            found.append(
                Ban(
                    words=tuple(_listed(words)),
                    instead=instead,
                    names_only=where == "names",
                    phrases=tuple(phrase for phrase in allowed if "/" not in phrase),
                    files=tuple(phrase for phrase in allowed if "/" in phrase),
                )
            )
    return tuple(found)


def documents() -> dict[str, str]:
    """Return the prose of every document by its path: code spans and web addresses are left out.

    So is the glossary's table of words that are not used. Fenced blocks stay in, for their comments.
    """
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}
    name = str(_GLOSSARY.relative_to(ROOT))
    texts[name] = texts[name].split(_NO_WORDS)[0]
    return {path: _prose(text) for path, text in texts.items() if path not in GENERATED}


def help_texts() -> dict[str, str]:
    """Return the help of every command and its options, by the command."""
    return dict(_helped(smidgen, "smidgen"))


def names(tree: ast.Module) -> set[str]:
    """Return the identifiers of a module, as words: ``LetterBox.told_at`` gives "letter box", "told at"."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            found.add(node.arg)
    return {split_name(name) for name in found}


def split_name(name: str) -> str:
    """Return the words of an identifier in lower case."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_+", " ", name)
    return spaced.strip().lower()


def prose(source: str, tree: ast.Module) -> tuple[list[str], list[str]]:
    """Return a module's docstrings and comments, and its other texts of more than one word."""
    documented = {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in node.body
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    }
    strings = [
        node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
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


def left_in_code() -> tuple[dict[str, dict[str, int]], dict[str, list[str]]]:
    """Count each banned word in the code.

    Returns:
        Word → kind of text (names, prose, texts, tests) → count; and word → the files with it.
    """
    rows = bans()
    counts: dict[str, Counter[str]] = {ban.words[0]: Counter() for ban in rows}
    files: dict[str, list[str]] = {ban.words[0]: [] for ban in rows}
    for path, tree, source in sources((*CODE, "tests")):
        testing = path.startswith("tests/")
        named = " . ".join([*names(tree), split_name(Path(path).stem)])
        documented, texts = map(" . ".join, prose(source, tree))
        for ban in rows:
            if path.startswith(ban.files or ("\0",)):
                continue
            found = {"names": ban.count(named)}
            if not ban.names_only:
                found |= {"prose": ban.count(documented), "texts": ban.count(texts)}
            for kind, number in found.items():
                counts[ban.words[0]]["tests" if testing else kind] += number
            if any(found.values()):
                files[ban.words[0]].append(f"{path}: {sum(found.values())}")
    return {word: {kind: n for kind, n in sorted(c.items()) if n} for word, c in counts.items()}, files


def reasons_in_code() -> list[str]:
    """Return where a reason is parsed, as ``path:line``."""
    return [
        f"{path}:{line}"
        for path, tree, _ in sources(CODE)
        if path not in SEARCHING
        for line in parsed_reasons(tree)
    ]


def sources(folders: Iterable[str]) -> Iterator[tuple[str, ast.Module, str]]:
    """Yield path, syntax tree and text of each module."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            yield str(path.relative_to(ROOT)), ast.parse(source), source


def read_left() -> Mapping[str, Mapping[str, int]]:
    """Return what may still stand, as :data:`LEFT` has it."""
    left: Mapping[str, Mapping[str, int]] = json.loads(LEFT.read_text(encoding="utf-8"))
    return left


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
            found = command.get_command(context, sub)
            assert found
            yield from _helped(found, f"{name} {sub}")
    if command is smidgen:
        yield "commands", " ".join(text for _, text in COMMANDS.values())


def main() -> None:
    """Rewrite the table of what is left."""
    counts, _ = left_in_code()
    left = {word: kinds for word, kinds in counts.items() if kinds}
    left["parsed reasons"] = {"code": len(reasons_in_code())}
    LEFT.write_text(json.dumps(left, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
