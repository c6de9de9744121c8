"""The version to roll from: a former commit of this repository, laid out beside the present tree."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from loadgen.bench.faults.workers import CODE
from pipeline.model.errors import ConfigError
from pipeline.processes import run_bounded

_MOST_BYTES = 64 * 1024**2
_TIMEOUT_S = 60.0

FORMER = "f84f38b"
"""The default: the last commit before the topics of trials, which judges as the present version does. Older
commits report other events, or events with fewer fields."""


@contextmanager
def former_version(revision: str) -> Iterator[Path]:
    """Yield a folder with the packages of a commit.

    Raises:
        ConfigError: there is no history here, or no such commit.
    """
    command = ["git", "-C", str(CODE), "archive", revision, "pipeline", "agents", "topics.yaml"]
    try:
        output = run_bounded(command, max_bytes=_MOST_BYTES, timeout_s=_TIMEOUT_S)
    except FileNotFoundError:
        raise ConfigError("git is not installed") from None
    if output.code:
        reason = output.cut or output.errors.rpartition("\n")[2] or "git says nothing"
        raise ConfigError(f"no version {revision} here: {reason}")
    with tempfile.TemporaryDirectory(prefix="smidgen-former-") as folder:
        with tarfile.open(fileobj=BytesIO(output.data)) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder)
