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
from pipeline.model.errors import ConfigError
from pipeline.storage.arrays import ArrayStore
from tests.support.fixed_regressions import insert_regression, insert_trials, insert_verdict
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


class Opened(ArrayStore):
    """A store that stays open."""

    def close(self) -> None:
        """Nothing is open."""


def opened(data: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Return the store that commands open, with production of a data set folder."""
    store = Opened(read_dataset(data))
    monkeypatch.setattr("pipeline.storage.connect.open_store", lambda *_, **__: store)
    for module in ("agents.commands.suggest", "pipeline.commands.trial.kept"):
        monkeypatch.setattr(f"{module}.system_clock", lambda: BEGIN + 2 * DAY_S)
    return store


def suggest(work: Work, *arguments: str, diff: str = "") -> Result:
    command = ["trial", "suggest", *arguments, "--repo", str(work.path)]
    return CliRunner().invoke(smidgen, command, input=diff, standalone_mode=False)


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
    opened(data, monkeypatch)
    arguments = ["HEAD~2..HEAD", "--days", "2", "--json"]
    of_store, of_files = (
        suggest(work, *arguments, *source) for source in (("--service", "shop"), ("--data", str(data)))
    )
    assert orjson.loads(of_store.stdout) == orjson.loads(of_files.stdout)


def test_a_kept_test_makes_a_change_worth_an_experiment(
    work: Work, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(data, monkeypatch)
    insert_regression(store)
    few = ["HEAD~2..HEAD", "--service", "shop", "--trials", "100", "--trial-time", "1h"]
    assert suggest(work, *few).return_value == 1
    insert_verdict(store, "fixed")
    assert suggest(work, *few).return_value == 1
    insert_regression(store, modified=("shop.price",))
    shown = suggest(work, *few)
    assert shown.return_value == 0
    assert shown.stdout.startswith("r1  shop.cart +2.000% of CPU, by abc1234")
    assert "worth an experiment because of 1 kept test: it touches 10.000% of the samples" in shown.stdout
    result = orjson.loads(suggest(work, *few, "--json").stdout)
    assert result["worth"]
    assert result["score"] < result["threshold"]
    (kept,) = result["kept"]
    assert kept["subroutines"] == ["shop.cart", "shop.price"]
    assert [(one["endpoint"], one["replay"]) for one in kept["endpoints"]] == [("/cart", 1.0)]
    assert suggest(work, "HEAD~1..HEAD", "--service", "shop").return_value == 1


def test_kept_tests_are_listed(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(data, monkeypatch)
    insert_regression(store, modified=("shop.price",))
    none = listed_tests()
    assert none.stdout == "no kept tests of shop: no fixed regression has a known cause\n"
    assert (listed_tests("--json").stdout, none.exit_code) == ("", 0)
    insert_verdict(store, "fixed")
    insert_trials(store)
    shown = listed_tests()
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[:3] == [
        "r1  shop.cart +2.000% of CPU, by abc1234",
        "  subroutines  shop.cart, shop.price",
        "  replay       /cart 100.0%",
    ]
    assert shown.stdout.splitlines()[4:] == ["  experiment   pr-1"]
    kept = orjson.loads(listed_tests("--json").stdout)
    assert (kept["service"], kept["regression"], kept["cause"]) == ("shop", "r1", "abc1234")
    assert kept["trials"] == [{"metric": "cpu", "needed": kept["trials"][0]["needed"]}]
    assert shown.stdout.splitlines()[3] == f"  trials       {kept['trials'][0]['needed']} by cpu"


def listed_tests(*arguments: str) -> Result:
    return CliRunner().invoke(smidgen, ["trial", "kept", "--service", "shop", *arguments])


def test_a_diff_on_standard_input_is_as_its_commits(work: Work, data: Path) -> None:
    diff = work.git("diff", "HEAD~2") + "\n"
    arguments = ["--data", str(data), "--machines", "100", "--json"]
    of_diff, of_commits = suggest(work, "-", *arguments, diff=diff), suggest(work, "HEAD~2..HEAD", *arguments)
    assert (of_diff.return_value, of_diff.stdout) == (0, of_commits.stdout)


@pytest.mark.parametrize(
    ("diff", "reason"),
    [
        ("", "standard input: holds no diff"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n", "standard input: breaks off in a hunk of 'x'"),
        ("--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n", "the diff does not fit 'x.py'"),
    ],
)
def test_a_bad_diff_is_one_line(work: Work, data: Path, diff: str, reason: str) -> None:
    found = suggest(work, "-", "--data", str(data), diff=diff)
    assert isinstance(found.exception, ConfigError)
    assert reason in str(found.exception)


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
