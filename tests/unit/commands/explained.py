"""A scan with what it reports and drops, for the tests of ``smidgen why``."""

from __future__ import annotations

from dataclasses import replace

from pipeline.analysis.lifecycle import OpenRegression, Update
from pipeline.messages.events import regression_id
from pipeline.model import Change, Regression, Scan, Suspect
from tests.support.builders import build_candidate, build_decision, build_dropped
from tests.support.fleets import START

TRAIL = (
    build_decision("went_away", 0.9, 0.5, "significant, lasting and still there"),
    build_decision("threshold", 0.09, 0.03),
)

FOUND = replace(build_candidate("cart.tax", before=0.10, after=0.16, change_time=START + 60), passed=TRAIL)

LOST = replace(
    build_candidate("search.find", before=0.20, after=0.21, change_time=START + 58), passed=TRAIL[:1]
)

SCAN = Scan(
    service="shop",
    workload="live",
    start=START + 25,
    analysis_start=START + 55,
    analysis_end=START + 70,
    end=START + 75,
    series=9,
    candidates=(FOUND,),
    dropped=(build_dropped(LOST, "threshold", 0.01, 0.03, "absolute change below the threshold"),),
)  # fmt: skip

CHANGE = Change("f67ada14f", "shop", START + 59, "Round <b>twice</b>", "Ada")

REPORTED, DROPPED = (regression_id("shop", "live", candidate, SCAN.end) for candidate in (FOUND, LOST))

REGRESSION = Regression(REPORTED, "shop", "live", FOUND, SCAN.end, (Suspect(CHANGE, 0.9, {}),))

GONE = Update("resolved", OpenRegression(REPORTED, FOUND), "shop", "live", START + 120, START + 90, 0.101)
