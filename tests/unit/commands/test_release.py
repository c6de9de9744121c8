"""``smidgen release compare`` over dataset folders: decisions, exit codes, and mistakes in one line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from pipeline.backtest.dataset import Dataset, read_dataset, write_dataset
from pipeline.cli import run
from pipeline.commands.release.reading import Asked, SampleSource
from pipeline.commands.release.reading import compare as compare_of
from pipeline.model import SeriesKey, Stratum, StratumCounts
from pipeline.model.errors import ConfigError
from pipeline.model.units import HOUR_S
from pipeline.releases.gcpu import GcpuCompareConfig
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import Answer, CountQuery, StrataQuery

T0 = 1_760_000_400.0
STACKS = tuple(
    tuple(stack.split())
    for stack in (
        "main",
        "main serve",
        "main serve parse",
        "main serve parse json",
        "main db",
        "main db query",
    )
)
LEVEL = np.array([2.0, 20.0, 15.0, 25.0, 18.0, 20.0])
PARSE, QUERY = 2, 5


@dataclass(frozen=True)
class Fleet:
    """Four hosts of each release in two regions, an hour a window."""

    samples: int = 40_000  # of a host in a window
    hosts: int = 4  # of each release
    windows: int = 6
    risen: int = PARSE
    rise: float = 0.0  # of the stack, in shares of the service
    outlier: float = 0.0  # the same on the last host alone
    apart: bool = False  # v2 follows v1
    seed: int = 1


def write(path: Path, fleet: Fleet) -> Path:
    rng = np.random.default_rng(fleet.seed)
    names = sorted({name for stack in STACKS for name in stack})
    holds = np.array([[name in stack for stack in STACKS] for name in names], dtype=np.float64)
    strata = [
        Stratum.of({"region": "west" if host % 2 else "east"}, host=f"h{host}", release=release)
        for host, release in enumerate(["v1"] * fleet.hosts + ["v2"] * fleet.hosts)
    ]
    order = sorted(range(len(strata)), key=strata.__getitem__)
    drawn = np.zeros((len(strata), len(STACKS), fleet.windows))
    for row, host in enumerate(order):
        share = LEVEL / LEVEL.sum() * np.exp(rng.normal(0, 0.004, len(LEVEL)))
        share[fleet.risen] += fleet.rise * (strata[host].release == "v2")
        share[fleet.risen] += fleet.outlier * (host == len(strata) - 1)
        for hour in range(fleet.windows):
            new = strata[host].release == "v2"
            if not fleet.apart or new == (hour >= fleet.windows // 2):
                drawn[row, :, hour] = rng.multinomial(fleet.samples, share / share.sum())
    counts = np.einsum("ns,hsw->nhw", holds, drawn)
    keys = [SeriesKey("subroutine", name) for name in names]
    series, stratum, window = tuple(one.astype(np.int64) for one in np.nonzero(counts))
    write_dataset(
        Dataset(
            service="shop",
            start=T0,
            end=T0 + fleet.windows * HOUR_S,
            window_s=HOUR_S,
            stack_window_s=HOUR_S,
            kinds=tuple(key.kind for key in keys),
            names=tuple(key.name for key in keys),
            samples=counts.sum(axis=1),
            totals=drawn.sum(axis=(0, 1)),
            stacks=STACKS,
            stack_samples=drawn.sum(axis=0),
            metrics=(),
            changes=(),
            strata=tuple(strata[host] for host in order),
            stratum_totals=drawn.sum(axis=1),
            stratum_samples=StratumCounts(series, stratum, window, counts[series, stratum, window]),
        ),
        path,
    )
    return path


def compare(path: Path, *more: str) -> list[str]:
    return ["release", "compare", "v1", "v2", "--service", "shop", "--data", str(path), *more]


class WithoutYears(ArrayStore):
    """A store that is never asked for ten thousand windows at once."""

    def counts(self, query: CountQuery[Answer]) -> Answer:
        if isinstance(query, StrataQuery):
            assert (query.end - query.start) / query.resolution_s < 10_000
        return super().counts(query)


CASES = {
    "nothing changed": (Fleet(), 0, "not_slower"),
    "one subroutine is slower": (Fleet(rise=0.02), 1, "slower"),
    "one subroutine is faster": (Fleet(rise=-0.02), 0, "not_slower"),
    "too few samples": (Fleet(samples=200), 3, "undecided"),
    "one after the other": (Fleet(rise=0.1, apart=True, windows=16), 1, "slower"),
    "one host a side": (Fleet(rise=0.05, hosts=1, windows=12), 1, "slower"),
}


@pytest.mark.parametrize(("fleet", "code", "decision"), CASES.values(), ids=CASES.keys())
def test_the_exit_code_is_the_decision(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fleet: Fleet, code: int, decision: str
) -> None:
    path = write(tmp_path / "data", fleet)
    assert run(compare(path, "--json")) == code
    found = json.loads(capsys.readouterr().out)
    assert found["decision"] == decision
    assert (found["missing"]["samples"] > 0) == (code == 3)
    roots = [one["metric"] for one in found["series"] if one["state"] == "slower" and not one["explained_by"]]
    assert roots == (["parse"] if code == 1 else [])


def test_callers_of_what_got_slower_stand_under_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "data", Fleet(rise=0.03))
    assert run(compare(path, "--threshold", "0.001", "--json")) == 1
    found = {one["metric"]: one for one in json.loads(capsys.readouterr().out)["series"]}
    assert found["parse"]["explained_by"] is None
    assert found["serve"]["state"] == "slower"
    assert {found[name]["explained_by"] for name in ("serve", "db", "query")} == {"parse"}
    assert found["parse"]["lower"] < found["parse"]["change"] < found["parse"]["upper"]
    assert found["parse"]["change"] == pytest.approx(0.03 / 1.03 * 0.6, abs=0.003)
    assert "main" not in found  # all samples hold it


def test_the_table_says_how_it_was_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    path = write(tmp_path / "data", Fleet(rise=0.02))
    assert run(compare(path, "-o", str(page))) == 1
    shown = capsys.readouterr().out
    assert "shop: v2 against v1" in shown
    assert "side by side" in shown
    assert "within the same region" in shown
    assert "slower: parse" in shown
    assert "detectable" in shown
    assert "parse" in page.read_text()
    path = write(tmp_path / "after", Fleet(apart=True, windows=16))
    run(compare(path))
    assert "weaker evidence: the releases did not run at the same time" in capsys.readouterr().out
    path = write(tmp_path / "few", Fleet(samples=200))
    assert run(compare(path)) == 3
    assert "more samples of each release are missing" in capsys.readouterr().out


def test_a_host_alone_is_shown_and_can_be_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "data", Fleet(outlier=0.2, hosts=12))
    found = run(compare(path, "--json"))
    assert found != 1
    capsys.readouterr()
    assert run(compare(path, "--without", "h23")) == 0


def test_a_folder_is_watched_as_it_would_have_come(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "data", Fleet(rise=0.05, windows=12))
    assert run(compare(path, "--watch", "--json")) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["sequential"]
    assert found["end"] < "2025-10-09T20:00"  # before the end of the data
    assert run(compare(write(tmp_path / "same", Fleet(windows=12)), "--watch")) == 0


def test_the_unit_of_a_threshold_may_be_the_series_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "data", Fleet(rise=0.02))
    assert run(compare(path, "--relative", "0.5")) == 0


def test_a_watched_folder_begins_at_since(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "data", Fleet(rise=0.05, windows=12))
    assert run(compare(path, "--watch", "--since", "2025-10-09T12:30", "--json")) == 1
    assert json.loads(capsys.readouterr().out)["start"] == "2025-10-09T12:00:00.000Z"


SPANS = {
    "all": ([], "09:00", "15:00"),
    "nothing after the end": (["--until", "2025-10-09T11:50"], "09:00", "11:00"),
    "a whole hour": (["--until", "2025-10-09T12:00"], "09:00", "12:00"),
    "the hour of the beginning": (["--since", "2025-10-09T11:50"], "11:00", "15:00"),
    "after all data": (["--until", "2999-01-01"], "09:00", "15:00"),
    "long before all data": (["--since", "0001-01-01"], "09:00", "15:00"),
}


@pytest.mark.parametrize(("arguments", "start", "end"), SPANS.values(), ids=SPANS.keys())
def test_whole_hours_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], start: str, end: str
) -> None:
    run(compare(write(tmp_path / "data", Fleet()), "--json", *arguments))
    found = json.loads(capsys.readouterr().out)
    assert (found["start"][11:16], found["end"][11:16]) == (start, end)


def test_what_is_asked_of_a_live_store_may_begin_long_before_its_data(tmp_path: Path) -> None:
    data = read_dataset(write(tmp_path / "data", Fleet(rise=0.02)))
    asked = Asked("v1", "v2", None, (), GcpuCompareConfig())
    source = SampleSource(WithoutYears(data), "shop", HOUR_S, 0.0, None)
    found = compare_of(source, asked, (0.0, data.end))
    assert found.matched.span == (data.start, data.end)
    assert found.decision == "slower"
    with pytest.raises(ConfigError, match="no samples whose sender is known"):
        compare_of(source, asked, (0.0, data.start))


def test_names_are_whole_on_a_narrow_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "shop.checkout.baskets.Basket.sum_of_all_positions"
    stacks = tuple(tuple(name if one == "parse" else one for one in stack) for stack in STACKS)
    monkeypatch.setattr(f"{__name__}.STACKS", stacks)
    monkeypatch.setenv("COLUMNS", "80")
    run(compare(write(tmp_path / "data", Fleet(rise=0.05, hosts=1, windows=12))))
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    first = next(number for number, line in enumerate(lines) if "before" in line) + 2
    cells = "".join(line.split("  ")[0].strip() for line in lines[first:])
    assert f"{name}slower" in cells.replace(" ", "")
    assert "samples of 1 host;" in shown
    assert "1 hosts" not in shown


MISTAKES = {
    "unknown release": (
        ["v1", "v9", "--service", "shop"],
        "release v9: no samples of shop in this span; there are v1, v2",
    ),
    "unknown service": (["v1", "v2", "--service", "other"], "--service other: "),
    "the same": (["v1", "v1", "--service", "shop"], "release v1: is compared with itself"),
    "no service": (["v1", "v2"], "Missing option '--service'"),
    "no number": (["v1", "v2", "--service", "shop", "--alpha", "2"], "--alpha"),
    "threshold that is no number": (["v1", "v2", "--service", "shop", "--threshold", "nan"], "--threshold"),
    "relative without end": (["v1", "v2", "--service", "shop", "--relative", "inf"], "--relative"),
    "relative that is no number": (["v1", "v2", "--service", "shop", "--relative", "nan"], "--relative"),
    "alpha that is no number": (["v1", "v2", "--service", "shop", "--alpha", "nan"], "--alpha"),
    "power that is no number": (["v1", "v2", "--service", "shop", "--power", "nan"], "--power"),
    "unknown label": (
        ["v1", "v2", "--service", "shop", "--by", "zone"],
        "--by zone: no such label; there are region",
    ),
    "release as a label": (
        ["v1", "v2", "--service", "shop", "--by", "release"],
        "--by release: no such label; there are region",
    ),
    "unknown host": (
        ["v1", "v2", "--service", "shop", "--without", "h99"],
        "--without h99: no such host; there are h0, h1, h2, h3, h4, h5, h6, h7",
    ),
    "end before the data": (
        ["v1", "v2", "--service", "shop", "--until", "2020-01-01"],
        "--until: the data begin at 2025-10-09T09:00",
    ),
    "end in the first hour": (
        ["v1", "v2", "--service", "shop", "--until", "2025-10-09T09:30"],
        "--until: no whole block of 3600 s is over before it",
    ),
    "beginning after the data": (
        ["v1", "v2", "--service", "shop", "--since", "2030-01-01"],
        "--since: the data end at 2025-10-09T15:00",
    ),
    "no time": (["v1", "v2", "--service", "shop", "--since", "soon"], "--since: "),
    "all left out": (
        [
            "v1",
            "v2",
            "--service",
            "shop",
            "--without",
            "h4",
            "--without",
            "h5",
            "--without",
            "h6",
            "--without",
            "h7",
        ],
        "no samples are left of one release",
    ),
    "none at that time": (
        ["v1", "v2", "--service", "shop", "--until", "2025-10-09T10:00", "--since", "2025-10-09T12:00"],
        "--since: should be before the end",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_take_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    path = write(tmp_path / "data", Fleet(samples=100))
    assert run(["release", "compare", *arguments, "--data", str(path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_folder_without_counts_by_sender_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "data", Fleet(samples=100))
    (path / "strata.parquet").unlink()
    assert run(compare(path)) == 2
    assert "strata.parquet is not there" in capsys.readouterr().err


def test_a_folder_without_stacks_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "data", Fleet(rise=0.05))
    (path / "stacks.parquet").unlink()
    assert run(compare(path)) == 1
    assert "no stacks of that time: callers" in capsys.readouterr().out


def test_a_folder_without_labels_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plain"
    none = np.zeros((0, 0))
    key = SeriesKey("subroutine", "f")
    write_dataset(
        Dataset(
            "shop", T0, T0 + HOUR_S, HOUR_S, HOUR_S, (key.kind,), (key.name,), np.ones((1, 1)), np.ones(1),
            (("f",),), np.ones((1, 1)), (), (), stratum_totals=none,
        ),
        path,
    )  # fmt: skip
    assert run(compare(path)) == 2
    assert "no label columns" in capsys.readouterr().err
