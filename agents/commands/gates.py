"""``smidgen gates``: the map from gates to the subroutines that read them, of Python source."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from agents.commands.options import reader_names
from agents.source.gates import Module, map_gates, read_module
from pipeline.commands.request import EXISTING_FOLDER, FILE, argument, option, takes
from pipeline.commands.terminal import escape_controls
from pipeline.files.outputs import check_outputs, write_output
from pipeline.settings.gates import write_gates

MAX_BYTES = 2_000_000
"""Largest file that is parsed: longer ones are generated, and hold data rather than code."""

_NAMED = 5  # positions that the line on unresolved gates names; it counts the rest

_EXAMPLE = """\b
Example:
  smidgen gates src --reader conf.get --reader gates.enabled -o gates.yaml
"""


@click.command(epilog=_EXAMPLE)
@takes
def gates(
    source: Path = argument(EXISTING_FOLDER, metavar="SOURCE_DIR"),
    readers: tuple[str, ...] = option(
        flag="--reader",
        parse=reader_names,
        required=True,
        metavar="NAME",
        help="Function that reads a gate.",
    ),
    out: Path = option(flag="-o/--out", kind=FILE, help="Mapping to write."),
) -> None:
    """Map gates to the subroutines that read them, so that a config change leads to code.

    SOURCE_DIR is where imports start: SOURCE_DIR/shop/cart.py is the module shop.cart. A reader is a function
    whose first argument is the gate's name; it is looked for with whatever stands before it, so that
    conf.get also finds self.conf.get, and by the name that an import gives it. Functions that return what a
    reader returned, or a constant that it chooses, are looked through, one layer deep. Files that cannot be
    read, and reads whose gate is not clear, are named on stderr and left out.
    """
    modules: list[Module] = []
    files = skipped = 0
    paths = list(_python_files(source))
    check_outputs({"-o": out}, paths)
    for path in paths:
        files += 1
        try:
            modules.append(read_module(path.relative_to(source).as_posix(), _text(path, source)))
        except (ValueError, SyntaxError, RecursionError, MemoryError, OSError) as error:
            skipped += 1
            click.echo(f"skipped: {_plain(path.relative_to(source))}: {_reason(error)}", err=True)
    gate_map = map_gates(modules, readers)
    write_output(out, write_gates(gate_map.subroutines).encode())
    read = f"{files - skipped} of {files} files read" if skipped else f"{files} files read"
    click.echo(f"{_plain(out)}: {len(gate_map.subroutines)} gates ({read})")
    if gate_map.unresolved:
        click.echo(_unresolved(gate_map.unresolved), err=True)


def _python_files(source: Path) -> Iterator[Path]:
    """Yield Python files in a fixed order, without following links to folders, which may form cycles."""
    for folder, folders, names in os.walk(source):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.endswith(".py"):
                yield Path(folder, name)


def _text(path: Path, source: Path) -> str:
    """Return a file's text.

    Raises:
        ValueError: why it is not read.
        OSError: it cannot be.
    """
    if not path.resolve().is_relative_to(source.resolve()):
        raise ValueError("a link that leaves the folder")
    if not path.is_file():
        raise ValueError("not a plain file")
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"larger than {MAX_BYTES} bytes")
    content = path.read_bytes()
    if b"\0" in content:
        raise ValueError("a binary file")
    return content.decode("utf-8-sig")


def _unresolved(reads: Sequence[tuple[str, int]]) -> str:
    """Describe the reads that are left to be mapped by hand (FBDetect §5.4.9)."""
    named = ", ".join(f"{_plain(Path(path))}:{line}" for path, line in reads[:_NAMED])
    more = f" and {len(reads) - _NAMED} more" if len(reads) > _NAMED else ""
    return f"{len(reads)} {'read' if len(reads) == 1 else 'reads'} whose gate is unknown: {named}{more}"


def _reason(error: BaseException) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8 text"
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    if isinstance(error, RecursionError | MemoryError):
        return "nested too deeply"
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _plain(path: Path) -> str:
    """Return a path that a terminal can show: control characters and stray bytes are escaped."""
    return escape_controls(os.fsencode(path).decode("utf-8", errors="backslashreplace"))
