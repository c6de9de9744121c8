"""``smidgen agent plan``: rates that suffice."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from pipeline.cli import smidgen
from pipeline.files.values import share_of


@pytest.mark.parametrize(
    ("text", "share"), [("0.005%", 0.00005), ("0.00005", 0.00005), ("5e-5", 0.00005), ("12 %", 0.12)]
)
def test_shares(text: str, share: float) -> None:
    assert share_of(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "0", "2", "100%", "-1%", "much", "1e-999%", "nan"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="should be a share"):
        share_of(text)


def test_more_hosts_need_a_lower_rate() -> None:
    found = [_planned("--hosts", str(hosts), "--threshold", "0.005%") for hosts in (40, 400)]
    few, many = (one["rate_hz"] for one in found)
    assert many[0] == pytest.approx(few[0] / 10, rel=1e-3)
    assert few[1] == pytest.approx(3 * few[0], rel=1e-3)  # noise of three times the variance
    rates = found[0]["rates"]
    sizes = [one["after_extended"][0] for one in rates]
    assert sizes == sorted(sizes, reverse=True)


def test_the_rate_that_is_enough_detects_the_threshold() -> None:
    found = _planned("--hosts", "1", "--threshold", "0.1%", "--noise", "1", "1")
    hosts = round(found["rate_hz"][0] / 0.1)  # as many as make a rate of 0.1 Hz enough
    rates = _planned("--hosts", str(hosts), "--threshold", "0.1%", "--noise", "1", "1")["rates"]
    assert rates[1]["after_extended"][0] == pytest.approx(0.001, rel=0.02)


def test_table() -> None:
    result = CliRunner().invoke(
        smidgen, ["agent", "plan", "--hosts", "500", "--cpus", "8", "--workloads", "frontfaas-small"]
    )
    assert result.exit_code == 0, result.output
    assert "4,000 busy processors" in result.output
    assert "enough for 0.005 %" in result.output


def _planned(*args: str) -> dict[str, Any]:
    result = CliRunner().invoke(smidgen, ["agent", "plan", *args, "--workloads", "frontfaas-small", "--json"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = orjson.loads(result.output)
    return found
