"""File system small enough to be filled; mounting it needs privileges."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from pipeline.model.errors import ConfigError
from pipeline.processes import Output, run_bounded

SIZE_MB = 400
_CHUNK = b"\0" * (1 << 20)


class SmallDisk:
    """A tmpfs of ``SIZE_MB`` for as long as the ``with`` block runs.

    Raises:
        ConfigError: this user may not mount a tmpfs.
    """

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="smidgen-disk-")
        self.path = Path(self._folder.name)
        command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m", "tmpfs", os.fspath(self.path)]
        try:
            output = _run(command)
        except FileNotFoundError:
            self._folder.cleanup()
            raise ConfigError("there is no mount here") from None
        if output.code:
            self._folder.cleanup()
            raise ConfigError(f"a small file system cannot be mounted here: {output.errors}")
        return self

    def __exit__(self, *_: object) -> None:
        _run(["umount", "-l", os.fspath(self.path)])
        self._folder.cleanup()

    @property
    def _filler(self) -> Path:
        return self.path / "filler"

    def fill(self) -> bool:
        """Fill the file system; return whether it reports that it is full."""
        with self._filler.open("ab", buffering=0) as file:
            for chunk in (_CHUNK, _CHUNK[:4096]):
                while self._written(file.fileno(), chunk):
                    pass
            return not self._written(file.fileno(), _CHUNK[:1])

    def free(self) -> None:
        """Make room again."""
        self._filler.unlink(missing_ok=True)

    @staticmethod
    def _written(descriptor: int, chunk: bytes) -> bool:
        try:
            return os.write(descriptor, chunk) > 0
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            return False


def _run(command: Sequence[str]) -> Output:
    return run_bounded(command, max_bytes=1 << 16, timeout_s=30.0)
