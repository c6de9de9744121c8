"""The accuracy suite's record: shown again from its file, and as a page."""

from __future__ import annotations

import gzip
from pathlib import Path

import orjson
import pytest

from loadgen.evaluation.suite.ablation import worth_of_steps
from loadgen.evaluation.suite.command import read_suite, suite_to_json
from loadgen.evaluation.suite.page import (
    HOSTS_RECORD,
    STANDARD_RECORD,
    WORLD_RECORD,
    Record,
    accuracy_page,
)
from pipeline.cli import run
from tests.support.paths import ROOT
from tests.unit.evaluation.test_suite import suite_run

DOCS = ROOT / "docs"
RECORDS = ROOT / "loadgen" / "evaluation" / "records"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a record of three seeds, and what one of them comes to without a step."""
    monkeypatch.chdir(tmp_path)
    runs = [{**suite_run("a", seed, reported=seed, false=1), "without": []} for seed in (1, 2, 3)]
    lacking = {**suite_run("a", 1, reported=1, false=4), "without": ["threshold"]}
    whole = suite_to_json(runs, ["small"])
    part = suite_to_json(runs[:1], ["small"])
    part["ablation"] = [one.to_json() for one in worth_of_steps([runs[0], lacking])]
    (tmp_path / "record.json").write_bytes(orjson.dumps(whole))
    (tmp_path / "ablation.json").write_bytes(orjson.dumps(part))
    return tmp_path


def test_a_record_is_shown_again(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["bench", "accuracy", "--from", "record.json"]
    assert run(arguments) == 0
    shown = capfd.readouterr().out
    assert "6 of 12" in shown  # recall: 1, 2 and 3 of 4
    assert "without" not in shown
    assert run([*arguments, "--json"]) == 0
    assert orjson.loads(capfd.readouterr().out) == orjson.loads((folder / "record.json").read_bytes())
    assert run([*arguments, "--against", "record.json"]) == 0
    assert "No figure moved." in capfd.readouterr().out


def test_a_compressed_record_is_shown_like_a_plain_one(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "record.json.gz").write_bytes(gzip.compress((folder / "record.json").read_bytes()))
    assert run(["bench", "accuracy", "--from", "record.json.gz", "--json"]) == 0
    assert orjson.loads(capfd.readouterr().out) == orjson.loads((folder / "record.json").read_bytes())


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"{}", id="not compressed"),
        pytest.param(gzip.compress(b"{}" * 99)[:-9], id="cut off"),
        pytest.param(gzip.compress(b"{}")[:10] + b"\xff" * 20, id="damaged"),
    ],
)
def test_a_broken_compressed_record_is_bad_input(
    folder: Path, capfd: pytest.CaptureFixture[str], content: bytes
) -> None:
    (folder / "broken.json.gz").write_bytes(content)
    assert run(["bench", "accuracy", "--from", "broken.json.gz"]) == 2
    assert "broken.json.gz: " in capfd.readouterr().err


def test_what_steps_are_worth_comes_from_the_second_file(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ["bench", "accuracy", "--from", "record.json", "--from", "ablation.json"]
    assert run([*arguments, "--page", "page.md"]) == 0
    lines = capfd.readouterr().out.splitlines()
    words = [line.split()[:2] for line in lines]
    assert [pair for pair in words if pair[:1] == ["threshold"]][-1] == ["threshold", "20.0"]
    page = (folder / "page.md").read_text()
    assert "3 runs of `smidgen bench accuracy`, of 1 scenarios with 3 seeds each" in page
    assert "| recall | 6 of 12 | 50.0 % |" in page
    assert "From the first 1 seeds" in page
    # One run: 1 of 2 events is right with every step, 1 of 5 without the threshold.
    assert "| nothing | 50.0 % | 25.0 % |" in page
    assert "| threshold | 20.0 %<br>-30.0 % | 25.0 %<br>as before |" in page


def test_a_page_of_a_record_without_an_ablation_does_not_mention_one(folder: Path) -> None:
    page = accuracy_page(read_suite(folder / "record.json"))
    assert "ablation" not in page
    assert "Without a step" not in page


@pytest.mark.parametrize(
    ("scenarios", "record"),
    [
        pytest.param(["steps"], STANDARD_RECORD, id="a standard preset"),
        pytest.param(["holiday", "wrapper"], WORLD_RECORD, id="presets of --world"),
        pytest.param(["drained", "flags"], HOSTS_RECORD, id="presets of --hosts"),
        pytest.param(["holiday", "steps"], STANDARD_RECORD, id="both"),
        pytest.param(["own/holiday.yaml"], STANDARD_RECORD, id="a scenario file"),
    ],
)
def test_a_page_says_which_record_it_is_of(scenarios: list[str], record: Record) -> None:
    runs = [{**suite_run(name, 1, reported=1, false=0), "without": []} for name in scenarios]
    page = accuracy_page(suite_to_json(runs, ["small"]))
    assert page.startswith(f"# {record.title}\n\n{len(runs)} runs of `{record.command}`, of ")
    assert f"`{record.file}`.\n{record.beside}\n" in page


@pytest.mark.parametrize(
    ("page", "files"),
    [
        pytest.param("accuracy.md", ["accuracy.json.gz", "ablation.json.gz"], id="standard"),
        pytest.param("accuracy-world.md", ["world.json.gz"], id="world"),
        pytest.param("accuracy-hosts.md", ["hosts.json.gz"], id="hosts"),
    ],
)
def test_the_page_in_docs_is_that_of_the_files(page: str, files: list[str]) -> None:
    results = [read_suite(RECORDS / file) for file in files]
    assert (DOCS / page).read_text() == accuracy_page(*results), "run `make record`"
