"""Routes of an application that is imported in a process of its own."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from agents.profiles.naming import subroutine_name
from agents.source.routes import import_program
from agents.source.routes.route import Route, join_paths
from pipeline.counting.routes import patterns
from pipeline.model.errors import ConfigError
from pipeline.processes import run_bounded

TIMEOUT_S = 120.0
MAX_BYTES = 64 * 1024**2
"""How long an import may take, and how much it may print."""

FRAMEWORK = "imported"

_TARGET = re.compile(r"[A-Za-z_][\w.]*(:[A-Za-z_][\w.]*)?")
_FORMS: Mapping[str, Callable[[str], str]] = {
    "flask": patterns.of_flask,
    "braces": patterns.of_braces,
    "regex": lambda text: patterns.of_regex(patterns.of_flask(text)),
}


def import_routes(folder: Path, target: str, python: str = "") -> tuple[Route, ...]:
    """Import an application and return its routes whose handlers are defined in a folder.

    Its code runs, with this process's environment: only for applications that are trusted.

    Args:
        folder: Where imports start.
        target: ``module:name``; ``app`` without a name.
        python: Interpreter that has what the application needs; this one if empty.

    Raises:
        ConfigError: it cannot be imported, or is of no known framework.
    """
    if not _TARGET.fullmatch(target):
        raise ConfigError(f"--app: should be MODULE:NAME, not {target[:80]!r}")
    try:
        output = run_bounded(
            [python or sys.executable, str(Path(import_program.__file__)), target],
            max_bytes=MAX_BYTES,
            timeout_s=TIMEOUT_S,
            environment=dict(os.environ),
            folder=folder,
        )
    except OSError as error:
        raise ConfigError(f"--python: {python}: {error.strerror or error}") from None
    mark = import_program.MARK.encode()
    lines = [line.removeprefix(mark) for line in output.data.split(b"\n") if line.startswith(mark)]
    if output.cut or output.code:
        why = output.cut or (output.errors.strip().splitlines() or ["ended by itself"])[-1]
        raise ConfigError(f"--app {target}: {why}")
    if not lines:
        raise ConfigError(f"--app {target}: is no application of a framework that is known")
    top = str(folder.resolve()) + os.sep
    routes = (_route(orjson.loads(line), top) for line in lines)
    return tuple(dict.fromkeys(route for route in routes if route))


def _route(fields: Mapping[str, Any], top: str) -> Route | None:
    path = os.path.realpath(fields["path"]) if fields["path"] else ""
    if not path.startswith(top):
        return None
    pattern = join_paths(_FORMS[fields["form"]](fields["pattern"]))
    handler = subroutine_name(fields["module"], fields["name"])
    inside = path.removeprefix(top)
    return Route(tuple(fields["methods"]), pattern, handler, inside, fields["line"], FRAMEWORK)
