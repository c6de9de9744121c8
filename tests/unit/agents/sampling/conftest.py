"""A process to sample."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from agents.sampling.process import ExistingProcess


@pytest.fixture
def target() -> Iterator[ExistingProcess]:
    """A process that does nothing."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield ExistingProcess(process.pid)
        process.kill()
