"""Workers that were away report what an undisturbed run reports, and leave no scan out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadgen.bench.catch_up import CatchUpRequest, run_catch_up

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]


def test_workers_that_were_away_for_hours_report_what_they_would_have() -> None:
    done: list[str] = []
    request = CatchUpRequest(services=2, hours=3.0, hosts=2, processes=2)
    found = run_catch_up(request, lambda doing, _share: done.append(doing))
    assert found.passed, str(found)  # whole: pytest shortens what is no text
    assert (found.skipped, found.copies) == (0, 0)
    assert found.scans >= 2 * 5, "one every half hour, but for the last ones that wait for late data"
    assert (found.events > 0, found.messages > 100, found.level_s > 0) == (True, True, True)
    assert min(found.memory_mb.values()) > 50
    assert done[-1] == "comparing"
    assert not replace(found, differences=replace(found.differences, missing=1)).passed
    assert not replace(found, exits={"detect": [1]}).passed
