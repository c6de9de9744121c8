"""The version to roll from: a former commit of this repository, laid out beside the present tree."""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from loadgen.bench.faults.rig import CODE
from pipeline.errors import ConfigError

FORMER = "f88e459"
"""The last commit before agents had message ids and stages had probes, unless another one is named."""


@contextmanager
def former_version(revision: str) -> Iterator[Path]:
    """Give a folder with the packages as they were at a commit.

    Raises:
        ConfigError: there is no history here, or no such commit.
    """
    command = ["git", "-C", str(CODE), "archive", revision, "pipeline", "agents", "topics.yaml"]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        raise ConfigError("git is not installed") from None
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines()
        raise ConfigError(f"no version {revision} here: {reason[-1] if reason else 'git says nothing'}")
    with tempfile.TemporaryDirectory(prefix="smidgen-former-") as folder:
        with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder)
