"""The workload of the pages."""

from __future__ import annotations

import pytest

from pipeline.settings.workloads import Workload
from tests.support.fleets import LIVE


@pytest.fixture
def live() -> Workload:
    return LIVE
