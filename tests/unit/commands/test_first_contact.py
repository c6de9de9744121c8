"""What an impatient new user types, and what is said to it."""

from __future__ import annotations

import gzip
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.publishing.pending import Tally
from agents.publishing.publisher import Delivery
from agents.sampling.agent import report_sampling
from pipeline.cli import run
from pipeline.settings.config import local_state_file
from pipeline.settings.local import forget, remember
from tests.support.repositories import Work
from tests.unit.settings.test_local import running

NOWHERE = ("--broker", "127.0.0.1:1")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_program_without_python_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["--service", "s", "--kernel", "py-spy", *NOWHERE]
    assert run(["agent", "run", *arguments, "--", "/bin/sleep", "3"]) == 0
    err = capfd.readouterr().err
    assert (
        "nothing was sampled: the command ended first (Failed to find python version: it is no Python program"
        in err
    )


@pytest.mark.slow
def test_samples_that_the_broker_did_not_take_are_no_success(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.sampling.agent.FLUSH_S", 0.5)
    spin = "import time\nwhile time.process_time() < 2: pass"
    assert run(["agent", "run", "--service", "s", *NOWHERE, "--", "python3", "-c", spin]) == 1
    err = capfd.readouterr().err
    assert "sampling goes on and messages wait in the buffer" in err
    assert "what waits is tried to be published for 0 s more" in err
    assert "not confirmed by the broker when the agent ended" in err


@pytest.mark.parametrize(("samples", "said"), [(0, True), (1, False)], ids=["it waited", "it worked"])
def test_a_process_that_only_waits_is_said(
    samples: int, said: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "agents.sampling.agent")
    assert report_sampling(Delivery(published=Tally(4, samples), dropped=Tally(), unsent=Tally()))
    assert f"published 4 messages ({samples} sample" in caplog.text
    assert ("used no CPU while it was sampled; --idle counts what waits, too" in caplog.text) == said


def test_an_import_of_the_future_is_refused(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "stacks.txt").write_text("main;work 5\n")
    assert run(["agent", "import", "stacks.txt", "--service", "s", "--start", "2090-01-01", *NOWHERE]) == 2
    assert "--start: would end at 2090-01-01T00:01:00.000Z, which is still to come" in capfd.readouterr().err
    os.utime("stacks.txt", (4e9, 4e9))
    assert run(["agent", "import", "stacks.txt", "--service", "s", *NOWHERE]) == 2
    assert "stacks.txt: would end at 2096-" in capfd.readouterr().err


def test_a_misspelt_key_is_named(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "mine.yaml").write_text("name: mine\nresolutoin: 1m\nrerun_interval: 1h\nhistorical: 10h\n")
    assert run(["detectable", "--service", "s", "--workloads", "mine.yaml"]) == 2
    err = capfd.readouterr().err
    assert "mine: resolutoin: unknown key; known keys are" in err
    assert err.endswith("(did you mean resolution?)\n")


def test_of_many_keys_a_few_are_named_and_the_one_that_was_meant(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "smidgen.yaml").write_text("brokr: localhost:9092\n")
    assert run(["topics", "check"]) == 2
    err = capfd.readouterr().err
    assert len(err) < 250
    assert err.endswith(" more (did you mean broker?)\n")


def test_a_misspelt_variable_is_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SMIDGEN_BROKEN", "1")
    monkeypatch.setenv("SMIDGEN_GATEWAY_SERVICE_PORT", "80")  # as Kubernetes names a service's
    run(["topics", "check", *NOWHERE])
    assert capfd.readouterr().err.splitlines()[0] == (
        "smidgen: SMIDGEN_BROKEN is no setting: did you mean SMIDGEN_BROKER?"
    )


def test_a_value_is_refused_in_plain_words(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "smidgen.yaml").write_text("batch_size: many\n")
    assert run(["worker", "all"]) == 2
    assert capfd.readouterr().err == "smidgen: smidgen.yaml: batch_size: should be a whole number\n"


def test_what_does_not_exist_of_a_repository_is_not_the_repository(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    os.system("git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first")
    assert run(["changes", "--repo", ".", "--service", "s", "--rev", "gone", *NOWHERE]) == 2
    err = capfd.readouterr().err
    assert "no commit 'gone'" in err
    assert "--repo" not in err


def test_a_second_one_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    path = local_state_file()
    remember(path, running(os.getpid()))
    try:
        assert run(["up"]) == 2
    finally:
        forget(path, os.getpid())
    assert "smidgen up runs already" in capfd.readouterr().err


def test_a_command_that_uses_what_runs_here_says_so_once(capfd: pytest.CaptureFixture[str]) -> None:
    path = local_state_file()
    remember(path, running(os.getpid()))
    try:
        assert run(["topics", "check"]) == 2
        assert run(["topics", "check", *NOWHERE]) == 2
    finally:
        forget(path, os.getpid())
    assert capfd.readouterr().err.splitlines() == [
        "smidgen: on what smidgen up runs here (--broker for another)",
        "smidgen: broker 127.0.0.1:7001: cannot be reached",
        "smidgen: broker 127.0.0.1:1: cannot be reached",
    ]


POINTS = [
    (1_700_000_000 + 60 * number, 1.0 + 0.5 * (number >= 50) + 0.01 * (number % 7)) for number in range(100)
]
FILES = {
    "commas": ("x.csv", lambda t, v: f"{t},{v:.3f}", "timestamp,value"),
    "semicolons and decimal commas": (
        "x.csv",
        lambda t, v: f"{t};{v:.3f}".replace(".", ","),
        "timestamp;value",
    ),
    "tabs": ("x.tsv", lambda t, v: f"{t}\t{v:.3f}", "timestamp\tvalue"),
    "packed": ("x.csv.gz", lambda t, v: f"{t},{v:.3f}", "timestamp,value"),
}


@pytest.mark.parametrize(("name", "row", "header"), FILES.values(), ids=FILES.keys())
def test_files_as_people_have_them_are_read(
    folder: Path,
    capfd: pytest.CaptureFixture[str],
    name: str,
    row: Callable[[int, float], str],
    header: str,
) -> None:
    text = "\n".join([header, *(row(*point) for point in POINTS)]).encode()
    (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    assert run(["detect", name, "--json"]) == 0
    (change,) = json.loads(capfd.readouterr().out)["change_points"]
    assert change["index"] == 50
    assert change["after"] == pytest.approx(1.53, abs=0.01)


@pytest.mark.parametrize("ticks", [10**3, 10**6, 10**9], ids=["milliseconds", "micro", "nano"])
def test_an_export_of_a_dashboard_is_read(
    folder: Path, capfd: pytest.CaptureFixture[str], ticks: int
) -> None:
    rows = [f"{t * ticks}\t{v:.3f}\t{'' if number % 9 else 7}" for number, (t, v) in enumerate(POINTS)]
    text = "\n".join(["Time\tp50 of Shop\tidle", *rows])
    (folder / "x.csv").write_bytes(text.encode("utf-16"))
    assert run(["detect", "x.csv", "--json"]) == 0
    idle, shop = (json.loads(line) for line in capfd.readouterr().out.splitlines())
    (change,) = shop["change_points"]
    assert (shop["series"], change["index"]) == ("p50 of Shop", 50)
    assert change["timestamp"] == "2023-11-14T23:03:20.000Z"
    assert idle == {"series": "idle", "change_points": []}


def test_a_cell_of_a_wide_file_that_is_no_number_is_named(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "x.csv").write_text("time,a,b\n1700000000,1,2\n1700000060,1,fast\n")
    assert run(["detect", "x.csv"]) == 2
    assert capfd.readouterr().err == "smidgen: x.csv:3: b: not a number: 'fast'\n"


def test_a_long_search_says_how_far_it_is(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "x.csv").write_text("".join(f"{v}\n" for _, v in POINTS))
    monkeypatch.setattr("pipeline.commands.terminal.QUIET_S", 0.0)
    assert run(["detect", "x.csv"]) == 0
    assert "detect: 0 of 1 series after 0 s" in capfd.readouterr().err


def test_a_long_history_says_how_far_it_is(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work(tmp_path / "work")
    work.commit("Add the shop", {"shop.py": "def total():\n    return 1\n"})
    monkeypatch.setattr("pipeline.commands.terminal.QUIET_S", 0.0)
    assert run(["changes", "--service", "shop", "--repo", str(work.path), "--dry-run"]) == 0
    assert "changes: 0 of 1 commit after 0 s" in capfd.readouterr().err


def test_a_packed_file_that_is_cut_off_is_refused(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "x.csv.gz").write_bytes(gzip.compress(b"value\n1\n2\n")[:-9])
    assert run(["detect", "x.csv.gz"]) == 2
    assert capfd.readouterr().err == "smidgen: x.csv.gz: damaged gzip: it breaks off\n"


def test_a_table_in_a_pipe_cuts_no_name_and_steers_no_terminal(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    name = "\x1b[31m" + ".".join(["a_name_that_needs_room"] * 8)
    rows = (f"shop,{name},{time},{value}" for time, value in POINTS)
    (folder / "x.csv").write_text("\n".join(["service,metric,timestamp,value", *rows]))
    assert run(["detect", "x.csv"]) == 0
    out = capfd.readouterr().out
    assert name.replace("\x1b", r"\x1b") in out
    assert "\x1b" not in out
    assert "1 change point in 1 series" in out


def test_thousands_of_columns_make_no_long_line(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "x.csv").write_text(
        ",".join(f"c{number}" for number in range(3000)) + "\n" + "1," * 2999 + "1\n"
    )
    assert run(["backtest", "x.csv", "--workload", "live", "--events", "out.jsonl"]) == 2
    err = capfd.readouterr().err
    assert "it has c0, c1, c2, c3, c4, c5, c6, c7 and 2,992 more" in err
    assert len(err) < 200
