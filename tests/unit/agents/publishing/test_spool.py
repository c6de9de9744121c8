"""The spool through crashes, full disks and bounds: what comes out is a copy in order of what went in."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.publishing import spool as spools
from agents.publishing.pending import Pending, Tally
from agents.publishing.spool import MAGIC, Spool, encode_record, read_record
from pipeline.model import Outgoing
from pipeline.model.errors import ConfigError


def pending(number: int, size: int = 10) -> Pending:
    value = str(number).encode().ljust(size, b".")
    return Pending(Outgoing("profiles", f"shop/h{number}", value, (("h", b"\xff"),)), number)


def drained(spool: Spool) -> Iterator[int]:
    while found := spool.take():
        yield found.samples


def filled(folder: Path, numbers: range, max_bytes: int = 10**6) -> Spool:
    spool = Spool(folder, max_bytes)
    for number in numbers:
        spool.append(pending(number))
    return spool


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.spool"))


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "record"
    data = encode_record(pending(7))
    path.write_bytes(data)
    with path.open("rb") as file:
        assert read_record(file, len(data)) == (pending(7), len(data))
        assert read_record(file, 0) is None


@pytest.mark.parametrize("change", range(0, len(encode_record(pending(7))), 3))
def test_a_record_that_was_changed_anywhere_is_none(tmp_path: Path, change: int) -> None:
    data = bytearray(encode_record(pending(7)))
    data[change] ^= 0x40
    path = tmp_path / "record"
    path.write_bytes(data)
    with path.open("rb") as file:
        assert read_record(file, len(data)) is None


def test_what_comes_out_is_what_went_in_and_nothing_is_left(tmp_path: Path) -> None:
    filled(tmp_path, range(4)).close()
    spool = Spool(tmp_path, 10**6)  # messages outlive the agent
    assert spool.waiting == Tally(4, 6)
    spool.append(pending(4))
    assert [spool.take(), spool.take()] == [pending(0), pending(1)]
    spool.close()  # as at a crash: nothing is written down of what was taken, and it may not have been sent
    spool = Spool(tmp_path, 10**6)
    assert list(drained(spool)) == [0, 1, 2, 3, 4]
    assert (spool.waiting, spool.size, segments(tmp_path)) == (Tally(), 0, [])
    spool.append(pending(5))
    assert list(drained(spool)) == [5]


@pytest.mark.parametrize("cut", range(1, len(encode_record(pending(2))) + 1, 7))
def test_a_crash_within_a_record_loses_that_record_alone(tmp_path: Path, cut: int) -> None:
    filled(tmp_path, range(3)).close()
    (path,) = segments(tmp_path)
    os.truncate(path, path.stat().st_size - cut)
    spool = Spool(tmp_path, 10**6)
    assert spool.waiting.messages == 2
    spool.append(pending(9))
    assert list(drained(spool)) == [0, 1, 9]
    assert spool.damaged == Tally()


def test_a_damaged_record_costs_the_rest_of_its_segment_and_is_counted(tmp_path: Path) -> None:
    filled(tmp_path, range(3)).close()
    (path,) = segments(tmp_path)
    data = bytearray(path.read_bytes())
    data[len(MAGIC) + len(encode_record(pending(0))) + 40] ^= 1
    path.write_bytes(data)
    spool = Spool(tmp_path, 10**6)
    spool.append(pending(9))
    assert list(drained(spool)) == [0, 9]
    assert spool.damaged == Tally(2, 3)


@pytest.mark.parametrize("content", [b"", b"SMS", b"something else altogether"])
def test_a_file_that_is_no_segment_holds_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / f"{7:016d}.spool").write_bytes(content)
    spool = Spool(tmp_path, 10**6)
    spool.append(pending(1))
    assert list(drained(spool)) == [1]
    assert segments(tmp_path) == []


def test_the_oldest_make_room(tmp_path: Path) -> None:
    record = len(encode_record(pending(10)))
    spool = Spool(tmp_path, 20 * record)
    dropped = [spool.append(pending(number)) for number in range(10, 60)]
    assert spool.size <= 20 * record
    left = list(drained(spool))
    assert left == list(range(60 - len(left), 60))
    assert len(left) + sum(tally.messages for tally in dropped) == 50
    assert len(left) > 10
    assert spool.append(pending(1, size=21 * record)) == Tally(1, 1)


class _FullDisk:
    """Lets so many bytes be written from now on, as a disk that is nearly full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, left: int) -> None:
        self.left = left
        disk = self

        class File(io.FileIO):
            def write(self, data) -> int:  # type: ignore[no-untyped-def]
                taken = min(len(data), disk.left)
                disk.left -= taken
                if not taken and len(data):
                    raise OSError(28, "No space left on device")
                return super().write(bytes(data[:taken]))

        monkeypatch.setattr(spools, "open_segment", lambda path: File(path, "xb"))


@pytest.mark.parametrize("left", [0, 3, 60, 120])
def test_a_full_disk_loses_what_does_not_fit_and_harms_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    spool = filled(tmp_path, range(2))
    spool.close()
    spool = Spool(tmp_path, 10**6)
    disk = _FullDisk(monkeypatch, left)
    written = []
    for number in range(2, 6):
        try:
            spool.append(pending(number))
            written.append(number)
        except OSError:
            continue
    disk.left = 10**6
    spool.append(pending(6))
    assert len(written) == max((left - len(MAGIC)) // len(encode_record(pending(2))), 0)
    assert spool.waiting.messages == 2 + len(written) + 1
    spool.close()
    assert list(drained(Spool(tmp_path, 10**6))) == [0, 1, *written, 6]


def test_one_folder_is_one_agents(tmp_path: Path) -> None:
    spool = filled(tmp_path, range(1))
    with pytest.raises(ConfigError, match="another process has it"):
        Spool(tmp_path, 10**6)
    spool.close()
    Spool(tmp_path, 10**6).close()
    with pytest.raises(ConfigError, match="spool: .*: "):
        Spool(tmp_path / "lock" / "x", 10**6)


OPERATIONS = st.lists(
    st.one_of(
        st.integers(1, 60).map(lambda size: ("put", size)), st.sampled_from([("take", 0), ("restart", 0)])
    ),
    max_size=60,
)


@settings(max_examples=60, deadline=None)
@given(operations=OPERATIONS, max_bytes=st.integers(300, 3000))
def test_what_comes_out_is_in_order_and_ends_with_the_newest(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[str, int]], max_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    spool = Spool(folder, max_bytes)
    put: list[int] = []
    taken: list[int] = []
    dropped = 0
    for what, size in operations:
        if what == "put":
            put.append(len(put))
            dropped += spool.append(pending(put[-1], size)).messages
        elif what == "take":
            if found := spool.take():
                assert found == pending(found.samples, len(found.message.value))
                taken.append(found.samples)
        else:
            spool.close()
            spool, taken = Spool(folder, max_bytes), []  # what was taken may come again
        assert spool.size <= max_bytes
    rest = list(drained(spool))
    assert taken == sorted(set(taken))
    assert rest == put[len(put) - len(rest) :]
    assert len(rest) >= len(put) - dropped - len(taken) or any(what == "restart" for what, _ in operations)
    spool.close()
