from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from agents.profiles.message import ProfileOrigin
from agents.profiles.profile_files import Import, read_files
from pipeline.cli import run
from pipeline.messages.measurements import decode_profile
from pipeline.model.errors import ConfigError

NOWHERE = ("--broker", "127.0.0.1:1")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "repo"
    git = ("git", "-C", str(path), "-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run(["git", "init", "--quiet", str(path)], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message", "x"], check=True)
    return path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param("agent run", "Missing option '--service'", id="no service"),
        pytest.param("agent run --service s", "either --pid N or a command", id="nothing to sample"),
        pytest.param("agent run --service s --pid 1 -- x", "either", id="both"),
        pytest.param("agent run --service s --pid 1 --native --nonblocking", "has to pause", id="native"),
        pytest.param("agent run --service a/b --pid 1", "'--service'", id="slash in a service"),
        pytest.param("agent run --service 'a b' --pid 1", "'--service'", id="space in a service"),
        pytest.param("agent run --service s --host 'a b' --pid 1", "'--host'", id="host"),
        pytest.param("agent run --service s --pid 0", "'--pid'", id="pid 0"),
        pytest.param("agent run --service s --pid 99999999", "no process", id="no such pid"),
        pytest.param("agent run --service s -- /nowhere/x", "cannot run", id="no such command"),
        pytest.param("agent run --service s --hz 0 --pid 1", "'--hz'", id="no samples"),
        pytest.param("agent run --service s --interval 9ms --pid 1", "500ms", id="interval"),
        pytest.param("agent run --service s --label x --pid 1", "KEY=VALUE", id="label"),
        pytest.param("agent run --service s --release \udcff --pid 1", "printable", id="bytes"),
        pytest.param("agent run --service s --buffer big --pid 1", "a size", id="buffer"),
        pytest.param("agent run --service s --kernel x --pid 1", "'--kernel'", id="kernel"),
        pytest.param("agent run --service s --broker a:b -- true", "host:port", id="broker"),
        pytest.param("agent import --service s", "FILE", id="no file"),
        pytest.param("agent import nowhere.txt --service s", "No such file", id="no such file"),
        pytest.param("agent import f --service s --start noon", "ISO 8601", id="start"),
        pytest.param("agent import f --service s --start 1e12", "between 2000", id="ms"),
        pytest.param("agent webhooks", "--service-map", id="no service map"),
        pytest.param("agent webhooks --service-map nowhere", "No such file", id="no such service map"),
        pytest.param("agent webhooks --service-map x --listen 80", "HOST:PORT", id="no host"),
        pytest.param("agent webhooks --service-map x --listen a:99999", "HOST:PORT", id="no port"),
        pytest.param("agent webhooks --service-map x --broker a:b", "host:port", id="webhooks' broker"),
        pytest.param("changes --service s --repo nowhere", "no such folder", id="no folder"),
        pytest.param("changes --service s --rev a --range a..b", "give one of", id="rev, range"),
        pytest.param("changes --service s --branch a --tags b", "give one of", id="branch, tags"),
        pytest.param("changes --service s --follow 5s", "--branch or --tags", id="follow what"),
        pytest.param("changes --service s --branch a --state f", "--follow", id="state without follow"),
        pytest.param("changes --service s --branch a --follow 0", "more than 0", id="no pause"),
        pytest.param("changes --service s --time then", "ISO 8601", id="time of a change"),
    ],
)
def test_bad_usage_is_one_line(
    arguments: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(shlex.split(arguments)) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param("--rev nothing", "no commit 'nothing'", id="no such commit"),
        pytest.param("--range HEAD", "should be A..B", id="no range"),
        pytest.param("", "broker 127.0.0.1:1: cannot be reached", id="no broker"),
    ],
)
def test_changes_that_cannot_be_published(
    arguments: str, words: str, repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["changes", "--service", "s", "--repo", str(repository), *NOWHERE, *arguments.split()]) == 2
    assert words in capfd.readouterr().err


def test_importing_without_a_broker_fails(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "f.txt").write_text("a;b 1")
    assert run(["agent", "import", str(tmp_path / "f.txt"), "--service", "s", *NOWHERE]) == 2
    assert capfd.readouterr().err == "smidgen: broker 127.0.0.1:1: cannot be reached\n"


def test_without_py_spy_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path=None: None)
    assert run(["agent", "run", "--service", "s", "--", "true"]) == 2
    assert "py-spy is not installed" in capfd.readouterr().err


@pytest.mark.parametrize(
    "command", [["agent"], ["agent", "run"], ["agent", "import"], ["agent", "webhooks"], ["changes"]]
)
def test_help_teaches(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command, "--help"]) == 0
    shown = capsys.readouterr().out
    if command != ["agent"]:
        assert f"  smidgen {' '.join(command)} " in shown, "an example"


def test_files_are_consecutive_intervals_from_the_start(tmp_path: Path) -> None:
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for number, path in enumerate(paths, 1):
        path.write_text(f"main;f {number}\n")
    found = read_files(paths, Import(ProfileOrigin("s", "h"), 1e9, 10.0, 1000))
    profiles = [decode_profile(message.value) for file in found for message in file.messages]
    assert [(p.start, p.end, int(p.counts.sum())) for p in profiles] == [
        (1e9, 1e9 + 10, 1),
        (1e9 + 10, 1e9 + 20, 2),
    ]
    assert {message.key for file in found for message in file.messages} == {"s/h"}


def test_without_a_start_a_file_ended_when_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a;b 1\nnonsense\na;b 2\n 3\n")
    (file,) = read_files([path], Import(ProfileOrigin("s", "h"), None, 60.0, 1000))
    profile = decode_profile(file.messages[0].value)
    assert profile.end == pytest.approx(path.stat().st_mtime)
    assert profile.end - profile.start == pytest.approx(60.0)
    assert file.summary() == (
        f"{path}: 3 samples in 1 stack; 1 invalid line, first line 2: 'nonsense'; "
        "3 samples without frames left out"
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"", "has no collapsed stacks", id="empty"),
        pytest.param(b"nothing here\n", "is of no format that is known", id="prose"),
        pytest.param(bytes(range(256)), "is of no format that is known", id="binary"),
    ],
)
def test_a_file_without_stacks_is_an_error(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=said):
        read_files([path], Import(ProfileOrigin("s", "h"), 1e9, 1.0, 1000))


def test_a_file_of_more_samples_than_an_interval_has(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"main;a {2**40}\nmain;b 1\n")
    with pytest.raises(ConfigError, match=r"a\.txt: 1099511627777 samples, more than the 1099511627776"):
        read_files([path], Import(ProfileOrigin("s", "h"), 1e9, 1.0, 1000))


def test_a_file_imported_again_has_the_same_ids(tmp_path: Path) -> None:
    """Those that read them count a message once by its id; what is of another interval is another one."""
    one, other = tmp_path / "a.txt", tmp_path / "b.txt"
    for path in (one, other):
        path.write_text("main;f 3\nmain;g 2\n")

    def ids(paths: list[Path], host: str = "h", start: float | None = 1_700_000_000.0) -> list[str]:
        found = read_files(paths, Import(ProfileOrigin("shop", host), start, 60.0, 1 << 20))
        return [decode_profile(message.value).id for read in found for message in read.messages]

    first = ids([one])
    assert ids([one]) == first
    assert ids([one], start=None) == ids([one], start=None)
    others = [
        ids([other]),
        ids([one], host="i"),
        ids([one], start=1_700_000_060.0),
        ids([one], start=None),
    ]
    assert len({tuple(found) for found in (first, *others)}) == 5
