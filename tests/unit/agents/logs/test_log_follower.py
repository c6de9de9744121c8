"""A follower that is ended, killed and started again: each line is in exactly one message."""

from __future__ import annotations

import gzip
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.logs import RequestTypes, TallyOptions, line_format
from agents.logs.log_follower import Counting, LogFollower
from agents.logs.state_file import StateFile
from agents.publishing.message_queue import MessageQueue, Overflow
from agents.publishing.pending import Pending
from pipeline.messages.measurements import decode_metric_points
from pipeline.messages.requests import decode_requests
from pipeline.model import Outgoing, RequestCounts
from pipeline.model.errors import ConfigError

START = 1_700_000_010.0  # a multiple of 30 s
PERIOD_S = 30.0


class Killed(Exception):
    """Ends a step amid its work."""


class World:
    """A server that writes a log, what rotates it, a broker, and the follower that is under test."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.log = folder / "access.log"
        self.state_path = folder / "state.json"
        self.now = START
        self.release = "v1"
        self.is_up = True
        self.published: list[Outgoing] = []
        self.written: Counter[tuple[float, str]] = Counter()
        self.follower: LogFollower | None = None
        self._rotations = 0
        self._kills_at_offer = False
        self.log.touch()
        self.start()

    def start(self) -> None:
        self.outbox = MessageQueue(max_bytes=10_000, overflow=Overflow.KEEP)
        state = StateFile(self.state_path, service="shop", log=self.log, period_s=PERIOD_S)
        options = TallyOptions("shop", "h1", self.release, PERIOD_S, lateness_s=10.0)
        counting = Counting(options, RequestTypes(), lambda _: line_format("json"))
        self.follower = LogFollower(self.log, counting, state, self.outbox, self._offer)

    def write(self, *paths: str, after_s: float = 1.0) -> None:
        with self.log.open("a") as stream:
            for path in paths:
                self.now += after_s
                line = {"ts": self.now, "method": "GET", "path": path, "status": 200, "duration_s": 0.1}
                stream.write(orjson.dumps(line).decode() + "\n")
                self.written[self.now // PERIOD_S * PERIOD_S, f"GET {path}"] += 1

    def step(self) -> None:
        for _ in range(200):
            if not self.follower or not self.follower.step(self.now):
                break
        self.deliver()

    def deliver(self) -> None:
        """Publish what waits; the last one is not confirmed yet."""
        while self.is_up and (pending := self.outbox.take()):
            self.published.append(pending.message)

    def stop(self) -> None:
        if self.follower:
            self.outbox.put_back()
            self.follower.close(self.now)
        self.follower = None

    def kill(self) -> None:
        self.follower = None

    def kill_at_offer(self) -> None:
        self._kills_at_offer = True
        try:
            self.step()
        except Killed:
            self.follower = None
        self._kills_at_offer = False

    def kill_at_write(self) -> None:
        def write(*_: object) -> None:
            raise Killed

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StateFile, "write", write)
            try:
                self.step()
            except Killed:
                self.follower = None

    def rename(self) -> None:
        self._rotate(self.log.replace)

    def copy_and_truncate(self) -> None:
        if self._is_known:

            def copy(target: Path) -> None:
                shutil.copyfile(self.log, target)
                os.truncate(self.log, 0)

            self._rotate(copy)

    def compress(self) -> None:
        if self._is_known:

            def pack(target: Path) -> None:
                target.with_name(f"{target.name}.gz").write_bytes(gzip.compress(self.log.read_bytes(), 1))
                self.log.unlink()

            self._rotate(pack)

    def counted(self) -> Counter[tuple[float, str]]:
        """Return what all messages together say, each one counted once."""
        found: Counter[tuple[float, str]] = Counter()
        for counts in requests(self.published):
            for each in counts.types:
                found[counts.start, each.type] += each.requests
        return found

    def expected(self) -> Counter[tuple[float, str]]:
        """Return the lines by period and type, but for the period in which the log was begun."""
        first = min((start for start, _ in self.written), default=0.0)
        return Counter({key: count for key, count in self.written.items() if key[0] > first})

    def finish(self) -> None:
        """Start again, with a broker, and go on until all periods are closed."""
        self.is_up = True
        if not self.follower:
            self.start()
        self.now += 2 * PERIOD_S
        for _ in range(20):
            self.step()

    @property
    def _is_known(self) -> bool:
        """Whether something was read of the file, so that a copy of it is known."""
        position = orjson.loads(self.state_path.read_bytes())["position"]
        there = self.log.stat() if self.log.exists() else None
        return bool(there and position and position["offset"] and position["inode"] == there.st_ino)

    def _rotate(self, move: object) -> None:
        if self.log.exists() and self.log.stat().st_size:
            self._rotations += 1
            target = self.log.with_name(f"access.log-{20231010 + self._rotations}")
            move(target)  # type: ignore[operator]
            for path in self.log.parent.glob(f"{target.name}*"):
                os.utime(path, ns=(10**18, 10**18 + self._rotations))

    def _offer(self, message: Outgoing) -> None:
        if self._kills_at_offer:
            raise Killed
        self.outbox.put(Pending(message))


def requests(messages: Sequence[Outgoing]) -> Iterator[RequestCounts]:
    seen = set()
    for message in messages:
        if message.topic == "requests":
            counts = decode_requests(message.value)
            if counts.id not in seen:
                seen.add(counts.id)
                yield counts


ENDS = ["stop", "kill", "kill_at_offer", "kill_at_write"]
ROTATIONS = ["none", "rename", "copy_and_truncate", "compress"]


@pytest.mark.parametrize("rotation", ROTATIONS)
@pytest.mark.parametrize("end", ENDS)
def test_a_restart_counts_as_one_run_does(tmp_path: Path, end: str, rotation: str) -> None:
    world = World(tmp_path)
    world.write("/a", "/b", "/a", after_s=14.0)
    world.step()
    world.write("/a", "/b", after_s=20.0)
    getattr(world, end)()
    world.kill()
    world.write("/a")
    if rotation != "none":
        getattr(world, rotation)()
    world.write("/b", "/a", after_s=7.0)
    world.start()
    world.step()
    world.write("/c", after_s=40.0)
    world.finish()
    assert world.counted() == world.expected()
    assert len(world.expected()) == 6


OPERATIONS = st.sampled_from(
    ["write", "write", "step", "step", "start", "start", "release", "outage", "back", *ENDS, *ROTATIONS[1:]]
)


@settings(max_examples=40, deadline=None)
@given(st.lists(OPERATIONS, max_size=40), st.sampled_from([100, 2**20]))
def test_each_line_is_counted_once(
    tmp_path_factory: pytest.TempPathFactory, operations: list[str], chunk: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agents.logs.open_log.CHUNK_BYTES", chunk)
        patch.setattr("os.fsync", lambda _: None)  # what a kill leaves does not depend on it
        world = World(tmp_path_factory.mktemp("log"))
        for number, operation in enumerate(operations):
            if operation == "write":
                world.write("/a", "/b/c", after_s=float(1 + number % 9))
            elif operation == "release":
                world.release = f"v{number}"  # of the next start
            elif operation in ("outage", "back"):
                world.is_up = operation == "back"
            elif operation != "start" or not world.follower:
                getattr(world, operation)()
        world.finish()
    assert world.counted() == world.expected()


def test_another_release_gets_its_own_part_of_a_period(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("/a", after_s=20.0)
    for release in ("v1", "v2", "v1"):
        world.stop()
        world.release = release
        world.start()
        world.write("/a", after_s=12.0)
        world.step()
    world.finish()
    found = [(each.start - START, each.release, each.types[0].requests) for each in requests(world.published)]
    assert found == [(30.0, "v1", 1), (30.0, "v2", 1), (30.0, "v1", 1)]
    assert world.counted() == world.expected()
    assert not [message for message in world.published if message.topic == "metrics"]


def test_a_first_period_stays_out_under_another_release(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("/a")
    world.stop()
    world.release = "v2"
    world.start()
    world.write("/a")
    world.write("/a", after_s=40.0)
    world.finish()
    assert [(each.start - START, each.release) for each in requests(world.published)] == [(30.0, "v2")]


def test_names_that_were_folded_stay_folded(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write(*(f"/shop/{'x' * (i + 1)}" for i in range(40)), after_s=0.5)
    world.step()
    world.kill()
    world.start()
    world.write("/shop/x", after_s=40.0)
    world.finish()
    types = {each.type for counts in requests(world.published) for each in counts.types}
    assert types == {"GET /shop/:name"}


def test_metrics_of_an_open_period_go_on(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("/a", after_s=25.0)
    world.write("/a", "/a", after_s=10.0)
    world.stop()
    world.start()
    world.write("/a")
    world.finish()
    found = [decode_metric_points(each.value) for each in world.published if each.topic == "metrics"]
    values = {points.metric: points.values.tolist() for points in found}
    assert values["requests{GET /a}"] == [pytest.approx(3 / PERIOD_S)]


def test_during_an_outage_lines_stay_in_the_log(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.is_up = False
    for _ in range(60):
        world.write("/a", after_s=35.0)
        world.step()
    waiting = len(world.outbox.unconfirmed)
    assert 0 < waiting < 120
    assert world.state_path.stat().st_size < 60_000
    world.finish()
    assert world.counted() == world.expected()


def test_a_state_that_cannot_be_written_holds_back_what_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path)
    world.write("/a", after_s=31.0)
    world.write("/a", after_s=100.0)

    def refuse(*_: object) -> None:
        raise ConfigError("--state: state.json: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(StateFile, "write", refuse)
        world.step()
        world.step()
    assert world.published == []
    world.finish()
    assert world.counted() == world.expected()
    assert [record.getMessage() for record in caplog.records] == [
        "--state: state.json: No space left on device; until the state can be written nothing is published",
        "the state can be written again",
    ]


def test_a_log_that_comes_while_nobody_follows_it_is_all_new(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.stop()
    world.log.unlink()
    world.state_path.unlink()
    world.start()
    world.stop()
    world.write("/a", after_s=20.0)
    world.write("/b", after_s=20.0)
    world.finish()
    assert world.counted() == world.expected()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(b"", "not a state file", id="empty"),
        pytest.param(b"{}", "not a state file: service: is missing", id="nothing"),
        pytest.param(b"[1]", "not a state file: should be a mapping", id="list"),
        pytest.param(b"\xff\x00", "not a state file", id="binary"),
        pytest.param(b'"closed":-', '"closed":"x', id="text"),
        pytest.param(b'"offset":0', '"offset":-1', id="negative"),
        pytest.param(b'"service":"shop"', '"service":"till"', id="service"),
        pytest.param(b'"period_s":30', '"period_s":60', id="period"),
    ],
)
def test_what_is_no_state_of_this_log_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    world = World(tmp_path)
    world.stop()
    written = world.state_path.read_bytes()
    if content.startswith(b'"'):
        assert content in written
        written, problem = written.replace(content, problem.encode()), "--state: "
    else:
        written = content
    world.state_path.write_bytes(written)
    with pytest.raises(ConfigError, match=problem) as refused:
        world.start()
    assert "\n" not in str(refused.value)
    assert world.state_path.read_bytes() == written


def test_a_state_has_one_agent(tmp_path: Path) -> None:
    first, second = (
        StateFile(tmp_path / "state", service="shop", log=tmp_path / "a", period_s=30.0) for _ in range(2)
    )
    with first.locked(), pytest.raises(ConfigError, match="another agent has it"), second.locked():
        pass
    with second.locked():
        pass


def test_what_is_left_out_is_logged_once_in_a_while(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path)
    for _ in range(3):
        with world.log.open("a") as stream:
            stream.write("what is this\n")
        world.step()
    world.now += 700
    world.step()
    assert [record.getMessage() for record in caplog.records] == [
        "1 lines could not be read, the first: 1",
        "3 lines could not be read, the first: 1, 2, 3",
    ]


def test_columns_of_w3c_are_read_again_after_a_restart(tmp_path: Path) -> None:
    log = tmp_path / "u_ex.log"
    log.write_text("#Fields: date time cs-method cs-uri-stem sc-status\n")
    for number in range(2):
        options = TallyOptions("shop", "h1", "", PERIOD_S, lateness_s=10.0)
        counting = Counting(options, RequestTypes(), lambda _: line_format("w3c"))
        outbox = MessageQueue(max_bytes=10_000, overflow=Overflow.KEEP)
        state = StateFile(tmp_path / "state", service="shop", log=log, period_s=PERIOD_S)
        follower = LogFollower(log, counting, state, outbox, lambda _: None)
        with log.open("a") as stream:
            stream.write(f"2023-11-14 22:13:3{number} GET /cart 200\n")
        while follower.step(START):
            pass
        follower.close(START)
        assert (follower.tally.requests, follower.tally.omissions.invalid) == (1, 0)


def append(log: Path, text: str) -> None:
    with log.open("a") as stream:
        stream.write(text)


def test_numbers_say_what_was_counted_and_left_out(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("/a", after_s=PERIOD_S)
    world.write("/deep" * 17, after_s=PERIOD_S)
    append(world.log, "what is this\n")
    world.write("/b", after_s=3 * PERIOD_S)
    world.step()
    assert world.follower
    numbers = {labels.get("reason", name): value for name, labels, value in world.follower.samples()}
    assert {reason: value for reason, value in numbers.items() if value} == {
        "agent_requests_total": 3,
        "cut": 1,
        "unreadable": 1,
    }
    assert "folded" in numbers
    assert world.follower.problem() == ""


def test_problems_of_a_follower_are_its_health(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path)
    assert world.follower
    assert world.follower.problem() == ""
    append(world.log, "what is this\n")
    world.step()
    assert world.follower.problem().startswith("no line could be read (1)")
    world.write("/a")
    world.step()
    assert world.follower.problem() == ""
    world.is_up = False
    for _ in range(40):
        world.write("/a", after_s=PERIOD_S)
        world.step()
    assert world.follower.problem() == "the buffer is full: lines wait in the log for the broker"
    world.is_up = True
    world.step()
    assert world.follower.problem() == ""

    def fail(*_: object) -> None:
        raise ConfigError("no space left")

    monkeypatch.setattr(StateFile, "write", fail)
    world.write("/a", after_s=PERIOD_S)
    world.step()
    assert world.follower.problem() == "the state cannot be written"
