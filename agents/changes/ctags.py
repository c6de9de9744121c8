"""Where the subroutines of source files begin and end, as Universal Ctags knows it, if it is installed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from agents.changes.languages import Language

MAX_BYTES = 4 * 1024**2
"""How much source of one commit is given to ctags, since what it prints can be many times as much."""

TIMEOUT_S = 30.0
"""How long all files of one commit may take."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A tag: what begins at ``line`` (from 1), and where it ends (None where ctags does not know)."""

    name: str
    kind: str
    line: int
    end: int | None
    scope: str


def find_ctags() -> str | None:
    """Return the path of a ctags that speaks JSON (Universal Ctags, not Exuberant), None without one."""
    binary = shutil.which("ctags") or shutil.which("universal-ctags")
    if not binary:
        return None
    told = _run([binary, "--options=NONE", "--list-features"], cwd=None)
    return binary if told is not None and b"json" in told else None


def read_marks(binary: str, sources: Sequence[tuple[Language, bytes]]) -> list[list[Mark]] | None:
    """Return the tags of each source, by line; None if ctags failed or took longer than TIMEOUT_S.

    Sources are written to a folder of their own under names made here, so that nothing of a repository
    reaches ctags but content, and options files of the caller are not read.
    """
    with tempfile.TemporaryDirectory(prefix="smidgen-ctags-") as folder:
        names = [f"{index}{language.suffix}" for index, (language, _) in enumerate(sources)]
        for name, (_, source) in zip(names, sources, strict=True):
            (Path(folder) / name).write_bytes(source)
        languages = ",".join(sorted({language.ctags for language, _ in sources}))
        options = ("--options=NONE", f"--languages={languages}", "--output-format=json", "--sort=no")
        out = _run([binary, *options, "--fields=+neKZ-P", "-f", "-", *names], cwd=folder)
    return None if out is None else parse_marks(out, names)


def parse_marks(out: bytes, names: Sequence[str]) -> list[list[Mark]]:
    """Return the marks of each file from what ctags printed, by line; what is no tag is passed over."""
    marks: dict[str, list[Mark]] = {name: [] for name in names}
    for line in out.splitlines():
        try:
            tag = orjson.loads(line)
        except orjson.JSONDecodeError:  # a name that is not UTF-8
            continue
        path, mark = (tag.get("path"), _mark(tag)) if isinstance(tag, dict) else (None, None)
        if mark and isinstance(path, str) and path in marks:
            marks[path].append(mark)
    return [sorted(marks[name], key=lambda mark: mark.line) for name in names]


def _mark(tag: dict[str, Any]) -> Mark | None:
    """Return a line of ctags as a mark, None if it is none or lacks what a mark has."""
    name, line, end = tag.get("name"), tag.get("line"), tag.get("end")
    kind, scope = tag.get("kind", ""), tag.get("scope", "")
    texts = isinstance(name, str) and isinstance(kind, str) and isinstance(scope, str)
    if tag.get("_type") != "tag" or not texts or not isinstance(line, int):
        return None
    return Mark(str(name), kind, line, end if isinstance(end, int) else None, scope)


def _run(command: Sequence[str], cwd: str | None) -> bytes | None:
    try:
        done = subprocess.run(
            command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout
