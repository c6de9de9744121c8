"""Every command that a block of the documents shows is run, over one embedded broker and store with data.

A command may find something (exit code 1) or too little (3); what nobody may see is a usage error, a missing
file or a traceback. Numbers and names of the documents are replaced by those of the data.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from agents.experiments.replay.recording import RecordedRequest, encode_head, encode_request
from pipeline.cli import run
from pipeline.embedded.stack import EmbeddedStack
from pipeline.kafka import apply_topics
from pipeline.messages.inputs import silence_to_row
from pipeline.messages.records import columns_of
from pipeline.messages.verdicts import verdict_to_row
from pipeline.model import Silence, Verdict
from pipeline.storage.connect import open_store
from pipeline.storage.interface import RowQuery
from tests.e2e.worker_process import TOPICS
from tests.support.command_lines import typed_lines
from tests.support.looked_into import SEARCH, WEEKLY_FIELDS, look_into
from tests.support.paths import ROOT
from tests.support.profile_files import jfr, pprof
from tests.support.repositories import Work
from tests.unit.project.test_docs import DOCUMENTS

pytestmark = pytest.mark.e2e

NOT_RUN: Mapping[str, str] = {
    r"bench (?!labeller)": "minutes to hours; tests/unit/bench runs each on little",
    r"demo|embedded|up$": "an engine of its own; tests/e2e has a test of each",
    r".*[\[\]]": "a form of commands, not one",
    r"agent logs -": "reads standard input; tests/unit/agents/logs does, too",
    r"agent list": "needs a gateway that serves rules; tests/unit/agents/host/fleet has one",
    r"agent run .*--native": "needs the right to trace, and a native process",
    r"lab": "many minutes; tests/unit/bench/lab and tests/e2e/test_lab.py have its parts",
    r"replay (record|run|capacity|mock)": "needs services; tests/unit/agents/experiments/replay has them",
    r"release routes .*--app": "imports an application; tests/unit/agents/source/routes has one",
    r"release compare": "needs two releases side by side; tests/e2e/test_release.py has them",
    r"why .*--ledger .*--data": "needs a candidate of its own backtest; tests/e2e/test_backtest.py has one",
    r"trial (bisect|suggest)": "needs a repository to measure; tests/unit/commands has one of each",
    r"stage skip": "needs a message that holds a stage up; tests/e2e/test_stage_commands.py has one",
}
"""Commands that are not run here, and why."""

STAY = re.compile(
    r"events tail(?!.*--no-follow)|alerts run(?!.*--no-follow)|dashboard|agent webhooks|gateway|worker"
    r"|agent host(?!.*--list)|agent run.*--pid|.*--follow(?! *no)|.*--watch"
)
"""Commands that go on until Ctrl-C."""

FIRST = ("loadgen fleet", "feedback export", "backtest")
"""What makes the files that others read, in this order; all others follow."""

STAY_S = 25.0
SLOWEST_S = 240.0
FINE = (0, 1, 3)
INTERRUPTED = (130, -signal.SIGINT)
"""By the signal itself Python ends where Ctrl-C came amid what an import compiles; a shell says 130."""


@dataclass(frozen=True)
class Prepared:
    """A folder with what the documents' commands read, and what to put for their names."""

    folder: Path
    environment: Mapping[str, str]
    names: Mapping[str, str]


def every_command() -> list[list[str]]:
    found = {tuple(words): None for text in DOCUMENTS.values() for words in typed_lines(text)}
    chosen = [list(words) for words in found if not any(re.match(p, " ".join(words)) for p in NOT_RUN)]
    return sorted(
        chosen, key=lambda words: next((n for n, f in enumerate(FIRST) if " ".join(words).startswith(f)), 9)
    )


def filled(words: Sequence[str], prepared: Prepared) -> list[str]:
    """Put the data's names for those of the documents."""
    line = " ".join(words)
    names = {**prepared.names}
    if "--change" in line or " cause " in line:
        names["8f2c11d0"] = names["4be1d02"]
    if words[0] == "mute":
        names["2026-03-01T12:00:00Z"] = "2h"
    if "--experiment" in line:
        names["10m"] = "0.5s"  # no judge runs
    return [names.get(word, word) for word in words]


def write_files(folder: Path) -> None:
    """Write the files that the documents name."""
    times = [f"2026-03-{1 + n // 24:02}T{n % 24:02}:00:00Z" for n in range(24 * 20)]
    rows = [f"shop,latency_p50,{time},{100 + n % 7 + (20 if n > 400 else 0)}" for n, time in enumerate(times)]
    for name in ("history.csv", "runs.csv"):
        (folder / name).write_text("\n".join(["service,metric,timestamp,value", *rows]) + "\n")
    asked = '10.0.0.1 - - [20/Mar/2026:10:00:00 +0000] "GET /cart HTTP/1.1" 200 512 "-" "curl"\n'
    (folder / "access.log").write_text(asked)
    (folder / "access.log.1").write_text(asked)
    (folder / "access.log.2.gz").write_bytes(gzip.compress(asked.encode()))
    for number, name in enumerate(("old", "new")):
        log = [
            f'h - - [2{number}/Mar/2026:10:{second // 60:02}:{second % 60:02} +0000] "GET /a HTTP/1.1" 200 5'
            for second in range(1200)
        ]
        (folder / f"access-{name}.log").write_text("\n".join(log))
        start = datetime(2026, 3, 20 + number, 10, tzinfo=UTC).timestamp()
        rows = [f"{start + 30 * n:.0f},{20 + n % 5},{30 + n % 7}" for n in range(40)]
        (folder / f"{name}.csv").write_text("\n".join(["time,GET /a,GET /b", *rows]))
    cpu = [
        f"2026-03-2{day}T10:{n // 2:02}:{n % 2 * 30:02}Z,{0.5 + n % 5}" for day in (0, 1) for n in range(40)
    ]
    (folder / "cpu.csv").write_text("\n".join(["time,cpu", *cpu]))
    for name in ("profile.txt", "stacks.txt", "a.txt", "b.txt"):
        (folder / name).write_text("main;shop.price 5\nmain;shop.tax 3\n")
    asked_again = RecordedRequest(1.0, "GET", "/cart/7")
    (folder / "shop.jsonl.gz").write_bytes(
        gzip.compress(encode_head("shop", "share 1", 1.0) + encode_request(asked_again))
    )
    (folder / "cpu.pb.gz").write_bytes(pprof())
    (folder / "recording.jfr").write_bytes(jfr())
    points = [
        f"{trial},{side},{metric},{100 + n % 3}"
        for trial in range(6)
        for side in "AB"
        for metric in ("cpu", "cpu_before", "p99", "throughput")
        for n in range(30 + trial)
    ]
    for name in ("trials.csv", "aa-trials.csv"):
        (folder / name).write_text("\n".join(["trial,side,metric,value", *points]) + "\n")
    machines = [f"m{n},web,{'ab'[n % 2]},{('5.2', '5.6')[n // 2 % 2]}" for n in range(100)]
    (folder / "machines.csv").write_text("\n".join(["machine,type,arch,kernel", *machines]) + "\n")
    results = [f"cpu,{machine},{100 + n}" for n, machine in enumerate(machines)]
    (folder / "results.csv").write_text("\n".join(["metric,machine,type,arch,kernel,value", *results]) + "\n")
    for name, state in (("flags.json", True), ("flags.old.json", False)):
        flag: dict[str, object] = {"state": "ENABLED", "variants": {"on": True, "off": False}}
        flag["defaultVariant"] = "on" if state else "off"
        (folder / name).write_text(json.dumps({"flags": {"new_prices": flag}}))
    for name in ("mine.yaml", "up.yaml"):
        fields = {"name": Path(name).stem, "series": "service" if name == "up.yaml" else "gcpu"}
        windows = {"resolution": "1h", "rerun_interval": "6h", "historical": "5d", "analysis": "12h"}
        (folder / name).write_text(
            yaml.safe_dump({**fields, **windows, "extended": "6h", "threshold": {"relative": 0.05}})
        )
    (folder / "weekly.yaml").write_text(yaml.safe_dump(dict(WEEKLY_FIELDS)))
    (folder / "services.yaml").write_text(
        "repositories:\n  acme/shop:\n    forge: github\n    secret_env: SHOP_WEBHOOK_SECRET\n"
        "    deploys: [{service: shop, branch: main}]\n"
    )
    (folder / "host.yaml").write_text("rules: [{match: {user: nobody}, service: shop}]\n")
    (folder / "alerts.yaml").write_text(
        "targets:\n  chat: {kind: webhook, url: 'http://127.0.0.1:9/'}\nrules:\n  - {to: [chat]}\n"
    )


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    folder = tmp_path_factory.mktemp("documented")
    work = Work(folder)
    work.commit("Old", {"src/shop.py": "def price(): return conf.get('x')\n"})
    work.git("tag", "v1.4")
    (folder / "shop.py").write_text("print('sold')\n")
    work.commit("New", {"src/shop.py": "def price(): return gates.enabled('new_prices')\n"})
    work.git("tag", "v1.5")
    (folder / "results").mkdir()
    (folder / "results" / f"{work.git('rev-parse', 'HEAD')[:10]}.txt").write_text(
        "BenchmarkSum-8 9 1 ns/op\n"
    )
    work.git("branch", "-M", "main")
    write_files(folder)
    assert run(["loadgen", "fleet", "--scenario", "tiny", "--seed", "2", "--out", str(folder / "out")]) == 0
    (folder / "docs").symlink_to(ROOT / "docs")
    (folder / "tests").symlink_to(ROOT / "tests")
    with EmbeddedStack() as stack:
        asyncio.run(apply_topics(stack.broker, TOPICS))
        with closing(open_store(stack.store)) as store:
            now = time.time()
            look_into(store, {**SEARCH, "service": "shop"}, end=now)
            events = [row["id"] for row in store.rows(RowQuery("regressions", "shop"))]
            changes = store.rows(RowQuery("changes", "shop"))
            said = Verdict(events[0], "shop", "true", now, "ada")
            store.insert("verdicts", columns_of([verdict_to_row(said)]))
            silences = [
                Silence("mute-5c1f0000", "shop", "muted", now, now, now + 3600, owner="ada"),
                Silence("expect-5c1f0000", "shop", "expected", now, now, subroutine="shop.x", cost=0.1),
            ]
            store.insert("silences", columns_of([silence_to_row(one) for one in silences]))
        names = {"ID": events[0], "c0ffee": events[0], "8f2c11d": events[1], "4be1d02": changes[0]["id"]}
        names |= {
            "8f2c11d0": events[1],
            "CHANGE": changes[0]["id"],
            "NAME": "chat",
            "DIR": "made",
            "S": "shop",
        }
        names |= {
            "STAGE": "aggregate",
            "STAGE...": "aggregate",
            "HOST:PORT": stack.broker,
            "DSN": stack.store,
        }
        names |= {"http://localhost:8123": stack.store, "localhost:9092": stack.broker, "live": "weekly"}
        names |= {"3f2a91c": "HEAD", "origin/main": "main", "4711": str(os.getpid()), "60": "2", "10s": "1s"}
        names |= {"medium": "tiny", "steps": "tiny", "$OLD": "v1", "$NEW": "v2", "2h": "2s", "8088": "0"}
        names |= {"127.0.0.1:9000": "127.0.0.1:0"}
        environment = {
            **{
                "SMIDGEN_BROKER": stack.broker,
                "SMIDGEN_STORE": stack.store,
                "SMIDGEN_WORKLOADS": "weekly.yaml",
            },
            **{"SMIDGEN_IDEMPOTENT_PRODUCER": "false", "SHOP_WEBHOOK_SECRET": "correct horse battery"},
            **{"XDG_RUNTIME_DIR": str(folder / "runtime"), "PYTHONPATH": str(ROOT)},
        }
        yield Prepared(folder, environment, names)


def test_commands_of_the_documents_run(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(prepared.folder)
    for name, value in prepared.environment.items():
        monkeypatch.setenv(name, value)
    failed = []
    ended = [words for words in every_command() if not STAY.match(" ".join(words))]
    for words in ended:
        given = filled(words, prepared)
        began = time.monotonic()
        try:
            code = run(given)
        except SystemExit as error:
            code = int(error.code or 0)
        said = capsys.readouterr()
        print(f"{time.monotonic() - began:6.1f} s  {code}  smidgen {' '.join(given)}")
        if code not in FINE or "Traceback" in said.err:
            failed.append((" ".join(given), code, said.err.strip().splitlines()[-1:]))
    assert not failed, "\n".join(map(str, failed))
    assert len(ended) > 50


def interruptible() -> None:
    """Take Ctrl-C again: a shell that starts the tests in the background has them ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def catches_interrupts(pid: int) -> bool:
    """Return whether a process has begun to handle Ctrl-C, or has ended: a busy machine starts it late."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("utf-8")
    except OSError:
        return True
    caught = int(status.partition("SigCgt:")[2].split()[0], 16) if "SigCgt:" in status else 0
    return "State:\tZ" in status or bool(caught & 1 << (signal.SIGINT - 1))


def interrupted(running: Mapping[str, subprocess.Popen[str]]) -> list[tuple[str, int, list[str]]]:
    """Interrupt commands once they run; return those that do not end as they should, and how they do."""
    time.sleep(STAY_S)
    deadline = time.monotonic() + SLOWEST_S
    while time.monotonic() < deadline and not all(catches_interrupts(one.pid) for one in running.values()):
        time.sleep(0.2)
    failed = []
    for process in running.values():
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
    for line, process in running.items():
        _, err = process.communicate(timeout=SLOWEST_S)
        if process.returncode not in (*FINE, *INTERRUPTED) or "Traceback" in err:
            failed.append((line, process.returncode, err.strip().splitlines()[-1:]))
    return failed


def test_commands_that_stay_run_until_they_are_interrupted(prepared: Prepared) -> None:
    running = {}
    environment = {**os.environ, **prepared.environment}
    for words in every_command():
        if STAY.match(" ".join(words)):
            given = filled(words, prepared)
            if given[0] == "dashboard" and "--port" not in given:
                given += ["--port", "0"]
            if given[0] == "gateway":
                given = ["gateway", "--listen", "127.0.0.1:0"]
            if given[:2] == ["agent", "webhooks"] and "--listen" not in given:
                given += ["--listen", "127.0.0.1:0"]
            if " ".join(given) in running:
                continue  # several documents' lines come to one here
            running[" ".join(given)] = subprocess.Popen(
                [sys.executable, "-m", "pipeline", *given],
                cwd=prepared.folder,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                preexec_fn=interruptible,
            )
    try:
        failed = interrupted(running)
    finally:
        for process in running.values():
            process.kill()
    assert not failed, "\n".join(map(str, failed))
    assert len(running) > 8
