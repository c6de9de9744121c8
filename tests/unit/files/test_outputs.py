"""Files that commands write: whole or not at all, and never over what they read."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from pipeline.cli import run
from pipeline.files.outputs import check_outputs, replacing, write_output
from pipeline.model.errors import ConfigError
from tests.support.paths import ROOT


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a file, a link to it, and a folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("before")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize("name", ["new", "file", "link"])
def test_a_file_is_replaced_at_the_end(folder: Path, name: str) -> None:
    path = folder / name
    there = path.exists()
    with replacing(path) as file:
        file.write(b"after")
        file.flush()
        assert path.exists() == there
        assert not there or path.read_text() == "before"
    assert path.read_text() == "after"
    assert (folder / "link").is_symlink()
    assert sorted(one.name for one in folder.iterdir()) == sorted({"file", "link", "folder", name})


@pytest.mark.parametrize("name", ["new", "file", "link"])
def test_what_fails_leaves_everything_as_it_was(folder: Path, name: str) -> None:
    def fail() -> None:
        with replacing(folder / name) as file:
            file.write(b"after")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (folder / "file").read_text() == "before"
    assert sorted(one.name for one in folder.iterdir()) == ["file", "folder", "link"]


def test_who_may_read_a_file_stays(folder: Path) -> None:
    (folder / "file").chmod(0o640)
    write_output(folder / "link", b"after", durable=True)
    assert stat.S_IMODE((folder / "file").stat().st_mode) == 0o640
    mask = os.umask(0o027)
    try:
        write_output(folder / "new", b"")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((folder / "new").stat().st_mode) == 0o640


def test_a_pipe_is_written_to(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    read: list[bytes] = []
    reader = Thread(target=lambda: read.append((folder / "pipe").read_bytes()))
    reader.start()
    write_output(folder / "pipe", b"after")
    reader.join()
    assert read == [b"after"]
    assert stat.S_ISFIFO((folder / "pipe").stat().st_mode)


_PRINTS = """
from pathlib import Path
from pipeline.files.outputs import write_output
print("first")
write_output(Path("/dev/stdout"), b"second\\n")
print("third")
"""


def test_standard_output_is_written_to(folder: Path) -> None:
    command = [sys.executable, "-c", _PRINTS]
    piped = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    with (folder / "file").open("w") as file:
        subprocess.run(command, cwd=ROOT, check=True, stdout=file)
    assert piped == (folder / "file").read_text() == "first\nsecond\nthird\n"


def test_a_device_stays_one(folder: Path) -> None:
    check_outputs({"-o": Path(os.devnull), "-p": Path(os.devnull)}, [Path(os.devnull)])
    write_output(Path(os.devnull), b"after")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


MISTAKES = {
    "what is read": (["file"], ["file"], "-0: file is read by this command, and would be lost"),
    "a link to what is read": (["link"], ["file"], "-0: link is read by this command, and would be lost"),
    "what is read through a link": (["file"], ["link"], "-0: file is read by"),
    "the same twice": (["new", "folder/../new"], [], "-1: folder/../new is given twice"),
    "a folder": (["folder"], [], "-0: folder is a folder"),
    "in no folder": (["none/new"], [], "none/new: No such file or directory"),
    "in a file": (["file/new"], [], "file/new: Not a directory"),
}


@pytest.mark.parametrize(("outputs", "inputs", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_what_could_not_be_written_is_refused_before(
    folder: Path, outputs: list[str], inputs: list[str], message: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        check_outputs({f"-{i}": Path(one) for i, one in enumerate(outputs)}, map(Path, inputs))
    assert message in str(raised.value)
    assert sorted(one.name for one in folder.iterdir()) == ["file", "folder", "link"]


def test_what_can_be_written_is_left_as_it_is(folder: Path) -> None:
    check_outputs({"-a": Path("file"), "-b": Path("new"), "-c": None}, [Path("folder/other"), None])
    assert (folder / "file").read_text() == "before"
    assert sorted(one.name for one in folder.iterdir()) == ["file", "folder", "link"]


def test_a_backtest_writes_through_links_and_into_devices(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"shop,latency,{1_700_000_000 + 1800 * n},{100 + n % 7}\n" for n in range(500)]
    (folder / "in.csv").write_text("service,metric,timestamp,value\n" + "".join(rows))
    outputs = {"--events": os.devnull, "--funnel": "link"}
    given = [word for pair in outputs.items() for word in pair]
    assert run(["backtest", "in.csv", "--workload", "ct-demand", *given]) == 0
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    assert (folder / "link").is_symlink()
    assert json.loads((folder / "file").read_text())


COMMANDS = {
    "backtest": ["backtest", "in.csv", "--events", "link.csv"],
    "backtest, changes": [
        "backtest",
        "in.csv",
        "--changes",
        "c.jsonl",
        "--events",
        "e",
        "--ledger",
        "c.jsonl",
    ],
    "backtest, folder": ["backtest", "data", "--events", "data/series.parquet"],
    "gates": ["gates", "data", "--reader", "check", "-o", "data/app.py"],
    "score": ["score", "--truth", "c.jsonl", "--events", "in.csv", "--html", "c.jsonl"],
    "compare": ["compare", "in.csv", "c.jsonl", "--html", "c.jsonl"],
    "bench accuracy": ["bench", "accuracy", "--from", "in.csv", "--page", "in.csv"],
    "why": ["why", "abcdef012", "--ledger", "c.jsonl", "-o", "c.jsonl"],
    "release": [
        "release",
        "compare",
        "a",
        "b",
        "--service",
        "s",
        "--data",
        "data",
        "-o",
        "data/series.parquet",
    ],
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS.keys())
def test_no_command_writes_over_what_it_reads(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    (folder / "data").mkdir()
    files = [Path("in.csv"), Path("c.jsonl"), Path("data/series.parquet"), Path("data/app.py")]
    for path in files:
        path.write_text("precious")
    Path("link.csv").symlink_to("in.csv")
    assert run(arguments) == 2
    assert "is read by this command, and would be lost" in capsys.readouterr().err
    assert [path.read_text() for path in files] == ["precious"] * 4
