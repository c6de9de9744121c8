"""Files that commands write: whole or not at all, and never over what the same command reads."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from uuid import uuid4

from pipeline.model.errors import ConfigError, file_errors


@contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[IO[bytes]]:
    """Open a file whose content takes the place of what is there when it is written to the end.

    Until then, and if anything fails, the file is as it was. A link stays, and what it leads to is replaced;
    a device, a pipe or standard output is written to as it is.

    Args:
        path: The file.
        durable: Whether it has to be on the disk, not only on its way, before it takes the place.

    Raises:
        ConfigError: it cannot be written.
    """
    with file_errors(path):
        there = _stat(path)
        if there and _is_stdout(there):
            sys.stdout.flush()
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        elif there and not stat.S_ISREG(there.st_mode):
            with path.open("wb") as file:
                yield file
        else:
            with _beside(path, there, durable=durable) as file:
                yield file


def write_output(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Write a file whole or not at all; see ``replacing``."""
    with replacing(path, durable=durable) as file:
        file.write(content)


def check_outputs(outputs: Mapping[str, Path | None], inputs: Iterable[Path | None] = ()) -> None:
    """Refuse before the work what could not be written after it, or would be lost by it.

    Args:
        outputs: By the option that names each; None where one is not given.
        inputs: Files that the command reads.

    Raises:
        ConfigError: the option, its file, and what is wrong.
    """
    read = {path.resolve() for path in inputs if path}
    written: set[Path] = set()
    for option, path in outputs.items():
        if path is None:
            continue
        with file_errors(path):
            there = _stat(path)
            if there and stat.S_ISDIR(there.st_mode):
                raise ConfigError(f"{option}: {path} is a folder")
            if there and (_is_stdout(there) or not stat.S_ISREG(there.st_mode)):
                continue
            target = path.resolve()
            if target in read:
                raise ConfigError(f"{option}: {path} is read by this command, and would be lost")
            if target in written:
                raise ConfigError(f"{option}: {path} is given twice")
            written.add(target)
            with _new(target, there):
                pass


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _is_stdout(there: os.stat_result) -> bool:
    try:
        return os.path.samestat(there, os.fstat(1))
    except OSError:  # it is closed
        return False


@contextmanager
def _beside(path: Path, there: os.stat_result | None, *, durable: bool) -> Iterator[IO[bytes]]:
    """Yield a new file in the folder of another one, which it then replaces."""
    target = path.resolve()
    with _new(target, there) as (file, beside):
        yield file
        if there:
            os.fchmod(file.fileno(), stat.S_IMODE(there.st_mode))
        if durable:
            file.flush()
            os.fsync(file.fileno())
        file.close()
        beside.replace(target)


@contextmanager
def _new(target: Path, there: os.stat_result | None) -> Iterator[tuple[IO[bytes], Path]]:
    """Make a file that nobody has in the folder of another one, and remove it if it is still there."""
    if there and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    beside = target.with_name(f".smidgen-{uuid4().hex}.part")
    with beside.open("xb") as file:
        try:
            yield file, beside
        finally:
            beside.unlink(missing_ok=True)
