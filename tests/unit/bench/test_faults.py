"""The parts of the fault suite: what it sends, what it finds, what it puts in between."""

from __future__ import annotations

import asyncio
import socket
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import orjson
import pytest

from loadgen.bench.faults.agent_process import Job, job_from_json
from loadgen.bench.faults.catalogue import read_catalogue
from loadgen.bench.faults.check import Differences, compare, compare_all, wrong_positions
from loadgen.bench.faults.command import outcome_line
from loadgen.bench.faults.flood import malformed
from loadgen.bench.faults.load import (
    FLEET,
    Load,
    Shape,
    build_fleet,
    build_load,
    together,
    workload_file,
    workloads,
)
from loadgen.bench.faults.proxies import BrokerProxy, StoreFault, StoreProxy
from loadgen.bench.faults.run import Options, Outcome, run_fault
from loadgen.bench.faults.truth import WINDOW_S
from loadgen.bench.faults.watch import View, content_hash
from pipeline.backtest.dataset import Dataset
from pipeline.backtest.run import run_backtest
from pipeline.cli import run
from pipeline.messages.inputs import decode_change
from pipeline.messages.measurements import decode_metric_points, decode_profile
from pipeline.messages.records import columns_of
from pipeline.model import Outgoing, Profile
from pipeline.model.errors import ConfigError, InvalidMessage, SmidgenError
from pipeline.settings.topics import load_topics
from pipeline.settings.workloads import load_workloads
from pipeline.storage.arrays import ArrayStore
from tests.support.counted_loads import count_load


@pytest.fixture(scope="module")
def load() -> Load:
    return build_load(Shape(windows=120), 1)


def counted(load: Load, *, without: int = -1, twice: int = -1) -> ArrayStore:
    store = ArrayStore()
    count_load(store, load, without=without, twice=twice)
    return store


def reported(load: Load) -> list[bytes]:
    return [orjson.dumps(event) for event in load.truth.events]


@pytest.mark.slow
def test_the_load_is_the_same_for_the_same_seed(load: Load) -> None:
    first, again, other = (build_load(Shape(windows=20), seed) for seed in (1, 1, 2))
    assert again.batches == first.batches
    assert other.batches != first.batches
    assert len(load.truth.events) >= 2
    assert load.truth.samples == sum(
        int(decode_profile(m.value).counts.sum()) for b in load.batches for m in b if m.topic == "profiles"
    )


def test_the_workload_is_a_valid_file(tmp_path: object) -> None:
    path = f"{tmp_path}/workload.yaml"
    with open(path, "w") as file:
        file.write(workload_file())
    assert load_workloads([path]) == workloads()


def test_what_is_counted_as_sent_has_no_differences(load: Load) -> None:
    differences, copies = compare(counted(load), load.truth, [*reported(load), reported(load)[0]])
    assert not differences.any, differences
    assert copies == 1


def test_a_profile_lost_or_doubled_is_found(load: Load) -> None:
    first = next(decode_profile(m.value) for m in load.batches[0] if m.topic == "profiles")
    samples = int(first.counts.sum())
    lost, _ = compare(counted(load, without=0), load.truth, reported(load))
    assert (lost.lost, lost.doubled, lost.totals) == (samples, 0, 1)
    assert lost.subroutines > 0
    assert lost.stacks > 0
    doubled, _ = compare(counted(load, twice=0), load.truth, reported(load))
    assert (doubled.lost, doubled.doubled, doubled.any) == (0, samples, True)


def test_events_missing_too_many_or_altered_are_found(load: Load) -> None:
    store = counted(load)
    events = [dict(event) for event in load.truth.events]
    other = {**events[0], "id": "another"}
    altered = {**events[1], "data": {**events[1]["data"], "after": 1.0}}
    differences, _ = compare(store, load.truth, [orjson.dumps(other), orjson.dumps(altered)])
    assert (differences.missing, differences.unexpected, differences.altered) == (len(events) - 1, 1, 1)


def test_an_undisturbed_run_reports_what_a_backtest_does(load: Load) -> None:
    truth = load.truth
    assert run_backtest(truth.dataset, workloads()).events == truth.events
    assert truth.parted > 0


def test_rows_missing_altered_or_too_many_are_found(load: Load) -> None:
    store, truth = counted(load), load.truth
    scans, outcomes = truth.rows["scans"], truth.rows["outcomes"]
    assert not compare(store, truth, reported(load))[0].any
    for other, wrong in (
        (replace(truth, rows={**truth.rows, "scans": [*scans, {**scans[0], "workload": "other"}]}), 1),
        (replace(truth, rows={**truth.rows, "scans": [{**scans[0], "series": 1}, *scans[1:]]}), 1),
        (replace(truth, rows={**truth.rows, "scans": scans[2:]}), 2),
    ):
        differences, _ = compare(store, other, reported(load))
        assert (differences.rows, differences.tables, differences.any) == (wrong, {"scans": wrong}, True)
    lost = [row for row in outcomes if not row["attempt"]]  # the marks without what they mark
    broken = replace(load, truths=(replace(truth, rows={**truth.rows, "outcomes": lost}),))
    store = ArrayStore()
    count_load(store, broken)
    assert compare(store, truth, reported(load))[0].tables.keys() == {"outcomes"}


def test_scans_that_clocks_decide_on_are_not_compared(load: Load) -> None:
    store, truth = counted(load), load.truth
    last = truth.rows["scans"][-1]["time"]
    fewer = replace(truth, rows={**truth.rows, "scans": truth.rows["scans"][:-1]})
    assert compare(store, fewer, reported(load))[0].tables == {"scans": 1}
    assert not compare(store, replace(fewer, certain_until=last - 1), reported(load))[0].any
    assert compare(store, replace(fewer, certain_until=last), reported(load))[0].any
    skewed = build_load(Shape(windows=20, skewed=(240.0, -240.0)), 1).truth
    assert skewed.certain_until < skewed.dataset.end - 900 - 240


def test_differences_add_up_by_table() -> None:
    one = Differences(*range(10), rows=3, tables={"scans": 2, "ledger": 1})
    both = one + Differences(*[1] * 10, rows=1, positions=1, tables={"scans": 1})
    assert (both.totals, both.doubled, both.rows, both.positions) == (1, 10, 4, 1)
    assert both.tables == {"scans": 3, "ledger": 1}
    assert Differences(*[0] * 10, positions=1).any


def test_partitions_not_counted_to_their_end_are_found(load: Load) -> None:
    store, topics = counted(load), load_topics()
    of_topic = Counter(message.topic for batch in load.batches for message in batch)
    ends = {(topic, 0): of_topic[topic] for topic in ("profiles", "metrics")}
    logs = {"cluster": "c", "broker_topic": "", "topic_id": "", "time": 1.0, "stream": "s"}
    store.insert("logs", columns_of([{**logs, "topic": topic} for topic, _ in ends]))
    assert wrong_positions(store, topics, ends) == 0
    assert wrong_positions(store, topics, {**ends, ("profiles", 0): of_topic["profiles"] + 1}) == 1
    assert wrong_positions(store, topics, {**ends, ("metrics", 3): 1}) == 1


def test_a_fleet_has_a_service_of_far_more_series() -> None:
    fleet = build_fleet(Shape(windows=4), 1)
    assert [truth.dataset.service for truth in fleet.truths] == list(FLEET)
    sizes = [len(truth.dataset.names) for truth in fleet.truths]
    assert max(sizes) > 5 * sorted(sizes)[-2]
    apart = [fleet.of_service(service) for service in FLEET]
    for number, batch in enumerate(fleet.batches):
        assert tuple(message for one in apart for message in one[number]) == batch


def test_several_services_are_compared_together(load: Load) -> None:
    both = together([load, build_load(Shape(windows=12, hosts=2), 2, "other")])
    store = ArrayStore()
    count_load(store, both)
    events = reported(load)
    assert not compare_all(store, both.truths, events)[0].any
    strange = orjson.loads(events[0])
    strange["data"]["service"] = "unknown"
    differences, _ = compare_all(store, both.truths, [*events[1:], orjson.dumps(strange)])
    assert (differences.missing, differences.unexpected) == (1, 1)
    without = compare_all(store, [*both.truths, replace(load.truth, dataset=unsent(load))], events)[0]
    assert without.lost == load.samples


def unsent(load: Load) -> Dataset:
    return replace(load.truth.dataset, service="unsent")


@pytest.mark.slow
def test_the_truth_of_killed_agents_is_what_the_log_holds(load: Load) -> None:
    assert load.as_published(lambda _message: True).truth.rows == load.truth.rows
    kept = [m for number, batch in enumerate(load.batches) for m in batch[: 9 if number == 70 else None]]
    published = {content_hash(message.topic, message.value) for message in kept}
    there = load.as_published(lambda m: content_hash(m.topic, m.value) in published)
    assert 0 < load.samples - there.samples < load.samples
    store = ArrayStore()
    count_load(store, replace(there, batches=(tuple(kept),)))
    assert not compare(store, there.truth, [orjson.dumps(event) for event in there.truth.events])[0].any


def test_an_outcome_is_a_line_that_says_what_differs() -> None:
    none = Differences(*[0] * 10)
    one = Outcome(
        *("kill", "kafka", 105, {}, 9_000, 1_234_567, 4, none, 2), recovery_s=41.2, seconds=800, planned=105
    )
    words = " ".join(outcome_line(one).split())
    assert words == "kill ok 105 strikes 1,234,567 samples 4 events 2 copies recovery 41.2 s 800 s in all"
    wrong = replace(one, differences=replace(none, missing=1, subroutines=3), failure="no end")
    assert outcome_line(wrong).split("  ")[-2:] == ["wrong counts 3, events missing 1", "no end"]
    assert " FAILED " in outcome_line(wrong)
    idle = replace(one, strikes=104, lacking=("104 of 105 strikes struck",))
    assert " FAILED 104 of 105 " in outcome_line(idle)
    assert outcome_line(idle).endswith("  104 of 105 strikes struck")
    rows = replace(one, differences=replace(none, rows=2, tables={"scans": 2}))
    assert outcome_line(rows).endswith("  rows of scans 2")
    summed = replace(rows, differences=none + replace(none, rows=2, tables={"scans": 2}))
    assert orjson.loads(orjson.dumps(summed.to_json()))["differences"]["tables"] == {"scans": 2}
    assert outcome_line(replace(one, skipped="no Java")) == "kill            left out: no Java"


@pytest.mark.parametrize("error", [ConfigError("the store has no such table"), SmidgenError("no end")])
def test_whatever_breaks_in_the_middle_fails(error: SmidgenError, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> Outcome:
        raise error

    monkeypatch.setattr("loadgen.bench.faults.run._run", breaks)
    outcome = run_fault("kill", read_catalogue()["kill"], Options(), lambda _doing, _share: None)
    assert (outcome.passed, outcome.skipped, outcome.failure) == (False, "", str(error))


def test_repeated_messages_are_sent_twice_and_count_once() -> None:
    plain, repeated = (build_load(Shape(windows=20, repeated=share), 1) for share in (0.0, 0.3))
    assert repeated.messages > plain.messages
    assert repeated.truth.samples == plain.truth.samples


@pytest.mark.slow
def test_what_was_deployed_before_the_start_comes_first(load: Load) -> None:
    month = 30 * 86_400.0
    long = build_load(Shape(windows=120, past_s=month), 1)
    first = [decode_change(m.value) for m in long.batches[0] if m.topic == "changes"]
    start = long.truth.dataset.start
    past = [change for change in first if change.time < start]
    assert start - month <= min(c.time for c in past) < start - month + 86_400
    plain = len(load.truth.dataset.changes)
    span = 120 * WINDOW_S
    assert len(past) == pytest.approx(plain * month / span, rel=0.05)  # as many a day as afterwards
    changes = long.truth.dataset.changes
    assert len({change.id for change in changes}) == len(changes) == len(past) + plain


def test_clocks_that_are_wrong_move_samples_between_windows() -> None:
    plain, skewed = (build_load(Shape(windows=20, skewed=by), 1) for by in ((), (240.0, -240.0)))
    assert skewed.truth.samples == plain.truth.samples
    assert not np.array_equal(
        skewed.truth.dataset.totals[: len(plain.truth.dataset.totals)], plain.truth.dataset.totals
    )
    starts = {p.start % WINDOW_S for b in skewed.batches for p in profiles_of(b)}
    assert starts == {240.0, WINDOW_S - 240.0}


def profiles_of(batch: object) -> list[Profile]:
    return [decode_profile(m.value) for m in batch if m.topic == "profiles"]  # type: ignore[attr-defined]


def test_malformed_messages_are_taken_by_no_decoder() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        value = malformed(rng)
        for decode in (decode_profile, decode_metric_points, decode_change):
            with pytest.raises((InvalidMessage, RecursionError)):
                decode(value)


def test_a_view_covers_what_was_there_before() -> None:
    topics = load_topics()
    earlier = View(0.0, topics, {("profiles", 0): 5, ("regressions", 0): 9})
    assert not View(1.0, topics, {}, {("profiles", 0): 4}).covers(earlier)
    assert View(1.0, topics, {}, {("profiles", 0): 5}).covers(earlier)
    assert earlier.lag("aggregate") == 5
    assert replace(earlier, committed={("profiles", 0): 3}).lag("aggregate") == 2


class _Upstream(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.server.bodies.append(self.rfile.read(length))  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: object) -> None:
        pass


class _FullUpstream(_Upstream):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(500)
        self.send_header("Content-Length", "0")
        self.end_headers()


def refusing_upstream() -> AbstractContextManager[ThreadingHTTPServer]:
    return upstream(_FullUpstream)


@contextmanager
def upstream(handler: type[_Upstream] = _Upstream) -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.bodies = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("fault", "applied", "answer"), [(None, 1, 200), ("refused", 0, 503), ("lost", 1, None), ("slow", 1, 200)]
)
def test_the_store_proxy_does_as_ordered(fault: StoreFault | None, applied: int, answer: int | None) -> None:
    with upstream() as server, StoreProxy(f"http://127.0.0.1:{server.server_port}", slow_s=0.01) as proxy:
        proxy.decide = lambda insert: fault if insert else None
        request = urllib.request.Request(f"{proxy.url}/?query=INSERT+INTO+t", data=b"rows")
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                status: int | None = response.status
        except urllib.error.HTTPError as error:
            status = error.code
        except OSError:
            status = None
        assert (status, len(server.bodies)) == (answer, applied)  # type: ignore[attr-defined]
        assert proxy.faults == (fault is not None)
        assert (proxy.unreached, proxy.inserts_refused, proxy.waiting) == (0, 0, 0)


def test_the_store_proxy_counts_what_the_store_itself_refuses_and_what_finds_none() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{probe.getsockname()[1]}"
    with refusing_upstream() as server, StoreProxy(f"http://127.0.0.1:{server.server_port}") as proxy:
        for upstream_url in (proxy.upstream, nobody):
            proxy.upstream = upstream_url
            for query in ("INSERT+INTO+t", "SELECT+1"):
                with suppress(OSError):
                    urllib.request.urlopen(f"{proxy.url}/?query={query}", data=b"rows", timeout=60)
        assert (proxy.inserts_refused, proxy.unreached, proxy.faults) == (1, 2, 0)


def test_the_broker_proxy_falls_silent_and_opens_again() -> None:
    connected = 0

    async def send_back(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connected
        connected += 1
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    async def ask(port: int, text: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(text)
        try:
            return await asyncio.wait_for(reader.read(100), 60)
        finally:
            writer.transport.abort()

    async def until(is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not is_so():
                await asyncio.sleep(0.01)

    async def go() -> None:
        server = await asyncio.start_server(send_back, "127.0.0.1", 0)
        proxy = await asyncio.to_thread(BrokerProxy(server.sockets[0].getsockname()[1]).__enter__)
        try:
            assert await ask(proxy.port, b"before") == b"before"
            _, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            # Both its ends are with the proxy, and none of the connection before.
            await until(lambda: connected == 2 and len(proxy._writers) == 2)
            proxy.fall_silent()
            writer.write(b"held")
            waiting = asyncio.ensure_future(ask(proxy.port, b"meanwhile"))
            await until(lambda: proxy.held_bytes > 0 and len(proxy._writers) == 3)
            await asyncio.sleep(0.2)
            assert not waiting.done()
            assert proxy.held_bytes == len(b"held")
            proxy.open_again()
            assert (await asyncio.gather(waiting, return_exceptions=True))[0] != b"meanwhile"
            assert await ask(proxy.port, b"after") == b"after"
            assert proxy.cut > 0
        finally:
            await asyncio.to_thread(proxy.__exit__, None, None, None)
            server.close()

    asyncio.run(go())


def test_a_proxy_before_nothing_drops_its_clients() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with BrokerProxy(port) as proxy, socket.create_connection(("127.0.0.1", proxy.port), 20) as client:
        try:
            answer = client.recv(10)
        except ConnectionResetError:
            answer = b""
        assert answer == b""


def test_bad_usage_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "faults", "--faults", "plague"]) == 2
    assert "no 'plague'" in capsys.readouterr().err
    assert run(["bench", "faults", "--stages", "cook"]) == 2
    assert run(["bench", "faults", "--outage", "soon"]) == 2


def test_the_list_names_every_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "faults", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(read_catalogue())


def test_the_embedded_broker_is_not_killed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "faults", "--faults", "kill-broker", "--json"]) == 0
    outcome = orjson.loads(capsys.readouterr().out)
    assert "keeps its log in memory" in outcome["skipped"]


def test_an_agents_job_is_the_same_in_its_process() -> None:
    message = Outgoing("profiles", "shop/h1", b'{"a":"\xc3\xa9"}\x00\xff', (("id", b"\xfe1"),))
    job = Job(((message, message), ()), "127.0.0.1:9092", True, 0.25)
    assert job_from_json(job.to_json()) == job
