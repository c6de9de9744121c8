"""Fixtures that several suites share: the embedded stack, and names that keep tests apart on it."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from hypothesis import settings

from pipeline.embedded.stack import EmbeddedStack
from pipeline.storage.connect import open_store
from pipeline.storage.interface import Store

# How long an example takes says how busy the machine is, and nothing about the code.
settings.register_profile("smidgen", deadline=None)
settings.load_profile("smidgen")


@pytest.fixture(scope="session")
def embedded() -> Iterator[EmbeddedStack]:
    """A broker and a store on loopback, with tables, for the whole run."""
    with EmbeddedStack() as stack:
        yield stack


@pytest.fixture(scope="session")
def broker(embedded: EmbeddedStack) -> str:
    """Bootstrap server of the embedded broker."""
    return embedded.broker


@pytest.fixture(scope="session")
def store_dsn(embedded: EmbeddedStack) -> str:
    """DSN of the embedded store, which every process can use."""
    return embedded.store


@pytest.fixture
def shared_store(store_dsn: str) -> Iterator[Store]:
    """The embedded store, opened; keep apart from other tests by ``service_name``."""
    store = open_store(store_dsn)
    yield store
    store.close()


@pytest.fixture
def service_name() -> str:
    """A service that no other test uses."""
    return f"service-{uuid4().hex[:12]}"
