"""Logs that are written and rotated, by one process and over restarts: each line is read once."""

from __future__ import annotations

import gzip
import os
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.logs.followed_log import FollowedLog
from pipeline.model.errors import ConfigError

Rotation = Callable[[Path], None]


def append(path: Path, *lines: str) -> None:
    with path.open("a") as stream:
        stream.writelines(f"{line}\n" for line in lines)


def all_lines(log: FollowedLog) -> list[str]:
    """Read until nothing comes any more, also of files that follow."""
    found = [log.read() for _ in range(8)]
    assert found[-1] == []
    return [line for lines in found for line in lines]


def rename(path: Path) -> None:
    """Rotate as logrotate does by default: access.log.1 becomes access.log.2."""
    for number in (2, 1):
        earlier = path.with_name(f"{path.name}.{number}")
        if earlier.exists():
            earlier.rename(path.with_name(f"{path.name}.{number + 1}"))
    path.rename(path.with_name(f"{path.name}.1"))


def rename_by_date(path: Path) -> None:
    path.rename(path.with_name("access-2023-10-10.log"))


def compress(path: Path) -> None:
    packed = path.with_name(f"{path.name}.1.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()


def copy_and_truncate(path: Path) -> None:
    shutil.copy(path, path.with_name(f"{path.name}.1"))
    os.truncate(path, 0)


def in_order(folder: Path) -> None:
    """Let what was written last have the latest time of all, however fast that was."""
    for back, path in enumerate(sorted(folder.iterdir(), key=lambda path: path.name)):
        os.utime(path, ns=(10**18, 10**18 - back * 10**9))


@pytest.mark.parametrize("way", ["rename", "truncate"])
def test_rotation_loses_no_line(tmp_path: Path, way: str) -> None:
    path = tmp_path / "access.log"
    path.write_text("before\n")
    log = FollowedLog(path)
    with path.open("a") as stream:
        stream.write("one\ntw")
        stream.flush()
        assert log.read() == ["one"]
        stream.write("o\nlast")
        stream.flush()
        found = log.read()
        if way == "rename":
            os.rename(path, tmp_path / "access.log.1")
            stream.write(" of it\n")
            stream.flush()
            found += log.read()
            path.write_text("new\n")
        else:
            os.truncate(path, 0)
            path.write_text("new\n")
    for _ in range(3):
        found += log.read()
    expected = ["two", "last of it", "new"] if way == "rename" else ["two", "new"]
    assert [one for one in found if one] == expected
    log.close()


def test_a_log_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    log = FollowedLog(tmp_path / "later.log")
    assert (log.head(), log.read()) == ([], [])
    (tmp_path / "later.log").write_text("a\n")
    assert log.read() == ["a"]
    log.close()


@pytest.mark.parametrize("is_down", [True, False], ids=["down", "up"])
@pytest.mark.parametrize("rotate", [rename, rename_by_date, compress, copy_and_truncate])
def test_what_was_not_read_before_a_rotation_is_read_after_it(
    tmp_path: Path, rotate: Rotation, is_down: bool, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "access.log"
    append(path, "before")
    log = FollowedLog(path)
    append(path, "one")
    assert log.read() == ["one"]
    position = log.position
    if is_down:
        log.close()
    append(path, "two")
    rotate(path)
    append(path, "three, longer than all before")
    if is_down:
        log = FollowedLog(path, position)
        assert "was rotated: what came before is read from access" in caplog.text
    assert all_lines(log) == ["two", "three, longer than all before"]
    log.close()


def test_several_rotations_are_read_in_order(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    append(path, "before")
    log = FollowedLog(path)
    position = log.position
    log.close()
    append(tmp_path / "access_admin.log", "of another log")
    for number in range(3):
        append(path, f"line {number}")
        rename(path)
    append(path, "last")
    in_order(tmp_path)
    assert all_lines(FollowedLog(path, position)) == ["line 0", "line 1", "line 2", "last"]


def test_a_server_may_write_to_the_old_file_until_it_opens_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    append(path, "before")
    log = FollowedLog(path)
    rename(path)
    path.touch()
    assert log.read() == []
    append(tmp_path / "access.log.1", "one")
    assert log.read() == ["one"]
    append(path, "two")
    assert all_lines(log) == ["two"]
    log.close()


@pytest.mark.parametrize(
    "replace",
    [
        pytest.param(
            lambda path: path.write_text("new, and as long as all that was there before\n"), id="new"
        ),
        pytest.param(lambda path: os.truncate(path, 0) or append(path, "new"), id="truncated"),  # type: ignore[func-returns-value]
    ],
)
def test_what_is_lost_is_said(tmp_path: Path, replace: Rotation, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "access.log"
    append(path, "before", "and more of it")
    log = FollowedLog(path)
    position = log.position
    log.close()
    replace(path)
    log = FollowedLog(path, position)
    assert [line[:3] for line in all_lines(log)] == ["new"]
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: was rotated, and no file beside it has what came after byte 22 of the one before: that is "
        "lost, and all that is here counts"
    ]
    log.close()


@pytest.mark.parametrize("chunk", [1, 7, 5000])
def test_a_position_within_any_line_is_found_again(
    tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.logs.open_log.CHUNK_BYTES", chunk)
    monkeypatch.setattr("agents.logs.open_log.MAX_LINE_BYTES", 1500)
    path = tmp_path / "access.log"
    lines = ["a", "b" * 3000, "c" * 900, "", "d"]
    append(path, *lines)
    with path.open("a") as stream:
        stream.write("without an end")
    log = FollowedLog(path, is_new=True)
    found: list[str] = []
    for _ in range(5000):
        if lines_read := log.read():
            found += lines_read
            position = log.position
            log.close()
            log = FollowedLog(path, position)
    assert [line[:1500] for line in found if line] == [line[:1500] for line in lines if line]
    position = log.position
    log.close()
    append(path, "")
    log = FollowedLog(path, position)
    assert [line for _ in range(20) for line in log.read()] == ["without an end"]
    log.close()


@pytest.mark.parametrize("cut", [1, 8, 2000, 40_000])
def test_a_rotated_file_that_is_damaged_costs_what_cannot_be_decompressed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, cut: int
) -> None:
    path = tmp_path / "access.log"
    append(path, "before")
    log = FollowedLog(path)
    position = log.position
    log.close()
    append(path, *map(str, range(50_000)))
    packed = gzip.compress(path.read_bytes())
    (tmp_path / "access.log.1.gz").write_bytes(packed[:-cut])
    readable = zlib.decompressobj(wbits=31).decompress(packed[:-cut]).decode().split("\n")
    path.write_text("new\n")
    expected = [line for line in readable[1:] if line]  # the last one may be a part
    log = FollowedLog(path, position)
    log.head()
    assert all_lines(log) == [*expected, "new"]
    assert "is damaged" in caplog.text


def test_a_link_that_leads_to_another_file_is_followed_once(tmp_path: Path) -> None:
    path, first, second = (tmp_path / name for name in ("access.log", "access.log.1", "access.log.2"))
    append(first, "before")
    path.symlink_to(first)
    log = FollowedLog(path)
    append(first, "one")
    append(second, "two")
    position = log.position
    path.unlink()
    path.symlink_to(second)
    os.utime(first, ns=(10**18, 10**18))
    assert all_lines(log) == ["one", "two"]
    log.close()
    log = FollowedLog(path, position)
    assert all_lines(log) == ["one", "two"]
    log.close()


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: os.mkfifo(path)])
def test_what_is_no_file_is_refused(tmp_path: Path, make: Rotation) -> None:
    make(tmp_path / "odd")
    with pytest.raises(ConfigError, match="odd: is no file"):
        FollowedLog(tmp_path / "odd")


def test_a_log_that_is_truncated_and_removed_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    append(path, "1", "2")
    log = FollowedLog(path, is_new=True)
    assert all_lines(log) == ["1", "2"]
    os.truncate(path, 0)
    path.unlink()
    assert all_lines(log) == []
    append(path, "3")
    assert all_lines(log) == ["3"]


@pytest.mark.parametrize("name", ["access-8080.log", "access2.log", "access.other.log"])
def test_a_log_of_its_own_is_no_rotated_one(tmp_path: Path, name: str) -> None:
    path = tmp_path / "access.log"
    append(path, "1")
    log = FollowedLog(path, is_new=True)
    assert all_lines(log) == ["1"]
    append(tmp_path / name, "of another")
    rename(path)
    append(path, "2")
    append(tmp_path / name, "of another")
    assert all_lines(log) == ["2"]
