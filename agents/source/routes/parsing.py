"""Java and JavaScript, parsed in a process of its own: a source that ends it costs only itself.

The process has bounds on time and memory, reads the sources of one call from its standard input, and answers
each with a line of JSON as soon as it is done.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import TypeAdapter

from agents.source.routes.java_source import JavaFile, read_java
from agents.source.routes.javascript_source import JavaScriptFile, read_javascript
from pipeline.processes import run_bounded
from pipeline.settings.config import plain_environment

FILE_S = 5.0
ALL_S = 120.0
"""How much processor time one source may take, and how long all may."""

MEMORY_BYTES = 1024**3
MAX_ANSWER_BYTES = 512 * 1024**2
MAX_ENDS = 5
"""How many sources may end the process; then the rest is left out."""

Parsed = JavaFile | JavaScriptFile


def parse_others(sources: Mapping[str, bytes]) -> tuple[list[Parsed], dict[str, str]]:
    """Return what sources of Java and JavaScript have, and why some could not be read."""
    left = list(sources)
    found: list[Parsed] = []
    unread: dict[str, str] = {}
    deadline = time.monotonic() + ALL_S
    while left and len(unread) < MAX_ENDS:
        heads = [{"path": path, "bytes": len(sources[path])} for path in left]
        stdin = b"\n".join([json.dumps(heads).encode(), b"".join(sources[path] for path in left)])
        output = run_bounded(
            [sys.executable, "-I", "-c", _PROGRAM, str(Path(__file__).parents[3])],
            stdin=stdin,
            max_bytes=MAX_ANSWER_BYTES,
            timeout_s=max(deadline - time.monotonic(), 1.0),
            environment=plain_environment(),
        )
        lines = output.data.split(b"\n")[:-1]
        found += [_decoded(path, line) for path, line in zip(left, lines, strict=False)]
        left = left[len(lines) :]
        if left:
            unread[left[0]] = "could not be parsed in time" if output.cut else "ended its parser"
            left = left[1:]
    return found, unread | dict.fromkeys(left, "too many others could not be parsed")


_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from agents.source.routes.parsing import main; main()"
)


def parse_one(path: str, source: bytes) -> Parsed:
    """Return what one source has."""
    suffix = PurePosixPath(path).suffix
    return read_java(path, source) if suffix == ".java" else read_javascript(path, suffix, source)


def main() -> None:
    """Answer the sources of standard input."""
    for limit, most in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    for head in json.loads(sys.stdin.buffer.readline()):
        source = sys.stdin.buffer.read(head["bytes"])
        signal.setitimer(signal.ITIMER_PROF, FILE_S)  # its signal ends the program
        answer = json.dumps(asdict(parse_one(head["path"], source)), default=list)
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


@cache
def _adapter(is_java: bool) -> TypeAdapter[Any]:
    return TypeAdapter(JavaFile if is_java else JavaScriptFile)


def _decoded(path: str, line: bytes) -> Parsed:
    parsed: Parsed = _adapter(path.endswith(".java")).validate_json(line)
    return parsed
