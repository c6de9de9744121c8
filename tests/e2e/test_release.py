"""``smidgen release compare`` over an embedded store: a canary beside the release before."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from pipeline.cli import run
from pipeline.model import Stratum
from pipeline.model.clock import to_iso
from pipeline.model.units import HOUR_S, MINUTE_S
from pipeline.storage.connect import open_store

T0 = 1_760_000_400.0
HOURS = 6
SERVICE = "release-shop"
SHARES = {"main": 1.0, "render": 0.2, "parse": 0.1}

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def store(store_dsn: str) -> str:
    """Six hours of three hosts of each release; v2 takes a tenth more in parse."""
    rng = np.random.default_rng(3)
    totals: list[dict[str, Any]] = []
    counts: list[dict[str, Any]] = []
    strata = [
        Stratum.of({"region": "west"}, host=f"h{host}", release="v1" if host < 3 else "v2")
        for host in range(6)
    ]
    for stratum in strata:
        for hour in range(HOURS):
            samples = 60_000
            shared = {"service": SERVICE, "stratum": stratum.id, "window": T0 + hour * HOUR_S}
            totals.append({**shared, "samples": samples})
            for name, share in SHARES.items():
                level = share * (1.1 if name == "parse" and stratum.release == "v2" else 1.0)
                series = {"kind": "subroutine", "subroutine": name, "width_s": 12 * 5 * MINUTE_S}
                counts.append({**shared, **series, "samples": int(rng.binomial(samples, level))})
    with closing(open_store(store_dsn)) as opened:
        opened.migrate()
        for table, rows in (("strata_totals", totals), ("strata_gcpu", counts)):
            where = {"stream": "s", "topic": "profiles", "partition": 0, "last_offset": 1}
            columns = {name: [{**row, **where}[name] for row in rows] for name in (*rows[0], *where)}
            opened.insert(table, columns)  # type: ignore[arg-type]
        described = [{**stratum.row, "service": SERVICE, "time": T0} for stratum in strata]
        opened.insert("strata", {name: [row[name] for row in described] for name in described[0]})
    return store_dsn


UNTIL = to_iso(T0 + HOURS * HOUR_S)


def test_a_canary_is_held_against_the_release_beside_it(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["release", "compare", "v1", "v2", "--service", SERVICE, "--store", store, "--until", UNTIL]
    assert run([*asked, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["decision"], found["evidence"], found["unit"]) == ("slower", "side_by_side", "host")
    assert found["hosts"] == {"baseline": 3, "candidate": 3}
    assert found["samples"] == {"baseline": 1_080_000, "candidate": 1_080_000}
    assert not found["grouped"]
    assert [one["metric"] for one in found["series"] if one["state"] == "slower"] == ["parse"]
    assert run([*asked, "--watch", "--interval", "0s"]) == 1
    assert "slower: parse" in capsys.readouterr().out


def test_mistakes_take_one_line(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["release", "compare", "v1", "v3", "--service", SERVICE, "--store", store, "--until", UNTIL]
    assert run(asked) == 2
    assert "release v3: no samples of release-shop in this span; there are v1, v2" in capsys.readouterr().err
    narrow = ["release", "compare", "v1", "v2", "--service", SERVICE, "--store", store, "--until", UNTIL]
    assert run([*narrow, "--stack-window", "10s"]) == 2
    assert "--stack-window should be that of the workers" in capsys.readouterr().err
    assert run([*narrow[:5], "other", *narrow[6:]]) == 2
    assert "--service other: no samples whose sender is known in this span" in capsys.readouterr().err
