"""Mark of tests of stages that run on every kind of store."""

from __future__ import annotations

import pytest

every_store = pytest.mark.parametrize("store", ["server", "arrays"], indirect=True)
"""For one test of each query and of each kind of row; what stages decide does not hang on the store."""
