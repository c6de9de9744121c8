"""``smidgen trial suggest`` on a repository, with production in a data set folder and in a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from click.testing import CliRunner, Result

from pipeline.backtest.dataset import Dataset, read_dataset, write_dataset
from pipeline.cli import run, smidgen
from pipeline.model import Change
from pipeline.storage.arrays import ArrayStore
from tests.support.repositories import Work

SHOP = "def price(x):\n    return x\n\n\ndef cart(x):\n    return x + 1\n\n\ndef unused(x):\n    return x\n"
DAY_S = 86_400.0
BEGIN = 20_000 * DAY_S
STACKS = (
    ("shop.main", "endpoint=/cart", "shop.cart", "shop.price"),
    ("shop.main", "endpoint=/cart", "shop.cart"),
    ("shop.main", "endpoint=/search", "shop.search"),
)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    work = Work(tmp_path_factory.mktemp("repository"))
    work.commit("Begin", {"shop.py": SHOP})
    work.commit("Price", {"shop.py": SHOP.replace("return x\n\n\ndef cart", "return 2 * x\n\n\ndef cart")})
    work.commit("Readme", {"README.md": "words"})
    return work


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    counts = np.array([[10.0, 10.0], [30.0, 30.0], [60.0, 60.0]])
    touched = ["shop.search", "shop.cart", "shop.price", "shop.other"]
    changes = tuple(
        Change(f"c{number}", "shop", BEGIN + number, "Change", subroutines=(touched[number % 4],))
        for number in range(40)
    )
    write_dataset(
        Dataset(
            service="shop",
            start=BEGIN,
            end=BEGIN + 2 * DAY_S,
            window_s=DAY_S,
            stack_window_s=DAY_S,
            kinds=("subroutine",),
            names=("shop.main",),
            samples=counts.sum(axis=0)[None],
            totals=counts.sum(axis=0),
            stacks=STACKS,
            stack_samples=counts,
            metrics=(),
            changes=changes,
        ),
        folder,
    )
    return folder


def suggest(work: Work, *arguments: str) -> Result:
    command = ["trial", "suggest", *arguments, "--repo", str(work.path)]
    return CliRunner().invoke(smidgen, command, standalone_mode=False)


def event(change: str) -> dict[str, Any]:
    data = {"root_causes": [{"change": {"id": change}, "score": 0.9}]}
    head = {"specversion": "1.0", "id": change, "type": "smidgen.regression.detected"}
    return {**head, "source": "/smidgen/shop", "time": "1970-01-03T00:00:00Z", "data": data}


def test_what_a_change_touches_and_what_to_replay(work: Work, data: Path) -> None:
    found = suggest(work, "HEAD~2..HEAD", "--data", str(data), "--machines", "100", "--json")
    assert found.return_value == 0
    result = orjson.loads(found.stdout)
    assert result["subroutines"] == [{"subroutine": "shop.price", "gcpu": pytest.approx(0.1)}]
    (endpoint,) = result["endpoints"]
    assert endpoint == {"endpoint": "/cart", "replay": 1.0, "touched": pytest.approx(0.25)}
    assert (result["examples"], result["regressions"]) == (40, 0)


def test_machines_that_are_few_test_what_is_most_at_stake(work: Work, data: Path) -> None:
    few = ["HEAD~2..HEAD", "--data", str(data), "--trials", "100", "--trial-time", "1h"]
    shown = suggest(work, *few)
    assert shown.return_value == 1
    assert "not worth an experiment: it touches 10.000% of the samples" in shown.stdout


def test_regressions_of_past_changes_are_learned(work: Work, data: Path, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_bytes(b"\n".join(orjson.dumps(event(f"c{number}")) for number in range(0, 40, 4)))
    arguments = ["HEAD~2..HEAD", "--data", str(data), "--json"]
    before, after = (suggest(work, *arguments, *more) for more in ((), ("--events", str(events))))
    assert orjson.loads(after.stdout)["regressions"] == 10
    assert orjson.loads(after.stdout)["chance"] > orjson.loads(before.stdout)["chance"]


def test_production_in_a_store_says_the_same(work: Work, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Opened(ArrayStore):
        def close(self) -> None:
            """Nothing is open."""

    monkeypatch.setattr("pipeline.storage.connect.open_store", lambda *_, **__: Opened(read_dataset(data)))
    monkeypatch.setattr("agents.commands.suggest.system_clock", lambda: BEGIN + 2 * DAY_S)
    arguments = ["HEAD~2..HEAD", "--days", "2", "--json"]
    of_store, of_files = (
        suggest(work, *arguments, *source) for source in (("--service", "shop"), ("--data", str(data)))
    )
    assert orjson.loads(of_store.stdout) == orjson.loads(of_files.stdout)


def test_documents_are_never_worth_an_experiment(work: Work, data: Path) -> None:
    found = suggest(work, "HEAD~1..HEAD", "--data", str(data), "--machines", "100")
    assert found.return_value == 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["HEAD~1..HEAD"], "give --service"),
        (["HEAD~1..HEAD", "--service", "a", "--events", "x"], "--events: are those of --data"),
        (["HEAD..HEAD", "--service", "a"], "has no commits"),
        (["HEAD~1..HEAD", "--data", "missing"], "missing"),
        (["HEAD~1..HEAD", "--data", "{data}", "--events", "{data}/changes.jsonl"], "--events"),
        (["HEAD~1..HEAD", "--data", "{data}", "--events", "missing.jsonl"], "missing.jsonl"),
    ],
)
def test_bad_usage_is_one_line(
    arguments: list[str], reason: str, work: Work, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [argument.format(data=data) for argument in arguments]
    assert run(["trial", "suggest", *given, "--repo", str(work.path)]) == 2
    error = capsys.readouterr().err
    assert reason in error
    assert "Traceback" not in error
