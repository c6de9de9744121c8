"""Steps put into real series: which are found, and how results of benchmarks are read."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest

from loadgen.evaluation.injected import measure_injected, read_results
from pipeline.cli import run
from pipeline.model import FloatArray
from pipeline.model.errors import ConfigError


def noisy(seed: int, level: float = 100.0) -> FloatArray:
    """A hundred points with noise of one per cent."""
    values: FloatArray = level * (1 + 0.01 * np.random.default_rng(seed).standard_normal(100))
    return values


def archive(path: Path, tests: dict[str, FloatArray], *, content: bytes | None = None) -> None:
    """Write results as one file a run, the last run first."""
    with tarfile.open(path, "w:gz") as tar:
        for test, values in tests.items():
            for run_at in reversed(range(len(values))):
                metrics = [{"name": "ops_sec", "value": values[run_at]}, {"name": "size", "value": 1}]
                body = content or json.dumps([{"timestamp": 1000 + run_at, "metrics": metrics}]).encode()
                info = tarfile.TarInfo(f"all/{test}/{run_at}.json")
                info.size = len(body)
                tar.addfile(info, io.BytesIO(body))


def test_large_steps_are_found_and_small_ones_are_not() -> None:
    small, large = measure_injected({"a": noisy(1), "b": noisy(2)}, (0.1, 10.0))
    assert (small.found.hits, small.others) == (0, 0)
    assert (large.found.hits, large.found.of, large.others) == (16, 16, 0)


def test_no_step_is_put_beside_a_change_of_the_series() -> None:
    values = noisy(3)
    values[42:] *= 1.5  # beside the place at 40
    (found,) = measure_injected({"a": values}, (10.0,))
    assert found.found.of == 6
    assert found.others == 0  # its own change is none


def test_results_are_read_by_test_in_the_order_of_time(tmp_path: Path) -> None:
    tests = {"fill": noisy(4), "read": noisy(5)}
    archive(tmp_path / "r.tgz", tests)
    found = read_results(tmp_path / "r.tgz", "ops_sec")
    assert list(found) == ["fill", "read"]
    for name, values in tests.items():
        np.testing.assert_allclose(found[name], values)
    with pytest.raises(ConfigError, match="no results of a metric 'latency'"):
        read_results(tmp_path / "r.tgz", "latency")


@pytest.mark.parametrize("content", [b"{", b'[{"timestamp": 1}]', b"[1]", b'{"a": 1}'])
def test_what_holds_no_results_is_refused(
    tmp_path: Path, content: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    archive(tmp_path / "r.tgz", {"fill": noisy(6)[:1]}, content=content)
    assert run(["bench", "injected", str(tmp_path / "r.tgz")]) == 2
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert "fill/0.json: no list of results" in err


def test_the_command_reads_what_detect_reads(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "v.csv").write_text("\n".join(["value", *(f"{value:.6f}" for value in noisy(7))]) + "\n")
    assert run(["bench", "injected", str(tmp_path / "v.csv"), "--percent", "10,20", "--json"]) == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [line["percent"] for line in lines] == [10.0, 20.0]
    assert all(line["found"]["value"] == 1.0 for line in lines)
    assert run(["bench", "injected", str(tmp_path / "v.csv"), "--percent", "much"]) == 2


def test_of_counts_the_shares_are_changed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(8)
    totals = rng.integers(10_000, 90_000, 100)
    rows = [
        f"shop,f,{1_700_000_000 + 60 * i},{rng.binomial(n, 0.1)},{n}" for i, n in enumerate(totals.tolist())
    ]
    (tmp_path / "c.csv").write_text("\n".join(["service,metric,timestamp,samples,total", *rows]) + "\n")
    assert run(["bench", "injected", str(tmp_path / "c.csv"), "--percent", "20", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["found"]["value"] == 1.0
