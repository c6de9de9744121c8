"""Annotations as an application with a sampler has them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agents.inprocess.marks import sampling


@pytest.fixture
def sampler_on() -> Iterator[None]:
    """Let annotations be kept, as they are while a sampler runs."""
    sampling.on = True
    yield
    sampling.on = False
