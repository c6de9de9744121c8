"""Processes that live, and kernels that need none."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from agents.sampling.kernels import base, register
from tests.unit.agents.host.fake_kernel import FakeKernels

KERNEL = "fake"


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> FakeKernels:
    """A kernel of the name ``fake``, for the time of a test."""
    made = FakeKernels()
    monkeypatch.setattr(base, "_registry", dict(base._registry))
    register(KERNEL, made)
    return made


@pytest.fixture
def pid() -> Iterator[int]:
    """A process that does nothing."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process.pid
        process.kill()
