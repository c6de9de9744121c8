"""A source tree as an application: its routes, and the call graph behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from agents.source.changes.history import module_of
from agents.source.changes.languages import LANGUAGES
from agents.source.python_index import PARSE_ERRORS
from agents.source.routes.aiohttp import find_aiohttp
from agents.source.routes.call_graph import CallGraph, build_graph
from agents.source.routes.django import find_django
from agents.source.routes.express import find_express
from agents.source.routes.fastapi import find_fastapi
from agents.source.routes.flask import find_flask
from agents.source.routes.java_source import JavaFile
from agents.source.routes.javascript_source import JavaScriptFile
from agents.source.routes.parsing import parse_others
from agents.source.routes.python_source import PythonFile, read_python
from agents.source.routes.python_tree import PythonTree
from agents.source.routes.route import Route
from agents.source.routes.spring import find_spring

MAX_FILE_BYTES = 1024**2
"""Largest file that is read: longer ones are generated, and hold data rather than code."""

_LANGUAGES = ("Java", "JavaScript", "TypeScript", "TSX")
SUFFIXES = (
    ".py",
    *(suffix for language in LANGUAGES if language.grammar in _LANGUAGES for suffix in language.suffixes),
)

_LEFT_OUT = frozenset(
    {"test", "tests", "__tests__", "testing", "node_modules", "site-packages", "venv", "migrations", "vendor"}
)
"""Folders whose code answers no request: tests, what others wrote, and changes of tables."""

_FINDERS = (find_flask, find_fastapi, find_aiohttp, find_django)


@dataclass(frozen=True, slots=True)
class Application:
    """A web application as its source defines it.

    Args:
        routes: In the order of frameworks and files, each once.
        graph: Call graph of all its subroutines.
        files: How many files were read.
        unread: Path → reason why it was not read.
    """

    routes: tuple[Route, ...]
    graph: CallGraph
    files: int
    unread: Mapping[str, str]


def is_read(path: str) -> bool:
    """Return whether a file of this path can hold routes or what they call."""
    if not path.endswith(SUFFIXES):
        return False
    *folders, name = PurePosixPath(path).parts
    hidden = any(part.startswith(".") for part in folders)
    test = name.startswith("test_") or name.endswith(
        ("_test.py", "Test.java", ".test.js", ".spec.js", ".min.js")
    )
    return not hidden and not test and not _LEFT_OUT & set(folders)


def read_application(sources: Mapping[str, bytes], source_roots: Iterable[str] = ()) -> Application:
    """Read a source tree.

    Args:
        sources: Path in the repository → text; those that ``is_read`` leaves out are not to be among them.
        source_roots: Folders that modules are named from, as for changes.
    """
    paths, roots = sources.keys(), tuple(source_roots)
    python: list[PythonFile] = []
    unread: dict[str, str] = {}
    for path, source in sources.items():
        if not path.endswith(".py"):
            continue
        try:
            python.append(read_python(path, module_of(path, paths, roots), _checked(source)))
        except PARSE_ERRORS as error:
            unread[path] = _reason(error)
    rest = {path: source for path, source in sources.items() if not path.endswith(".py")}
    parsed, silent = parse_others(rest)
    java = [file for file in parsed if isinstance(file, JavaFile)]
    javascript = [file for file in parsed if isinstance(file, JavaScriptFile)]
    units = [
        *(parsed_file.unit for parsed_file in python),
        *(parsed_file.unit for parsed_file in java),
        *(parsed_file.unit for parsed_file in javascript),
    ]
    graph, resolver = build_graph(units)
    tree = PythonTree(python, resolver)
    routes = [route for find in _FINDERS for route in find(tree)]
    routes += [*find_spring(java), *find_express(javascript, resolver)]
    files = len(python) + len(parsed)
    return Application(tuple(dict.fromkeys(routes)), graph, files, unread | silent)


def _checked(source: bytes) -> bytes:
    if len(source) > MAX_FILE_BYTES:
        raise ValueError(f"larger than {MAX_FILE_BYTES} bytes")
    return source


def _reason(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    return "nested too deeply" if isinstance(error, RecursionError | MemoryError) else str(error)
