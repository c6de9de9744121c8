"""Secrets: none is seen in logs, errors, dead letters, process lists, health, pages or reports."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest

from loadgen.engines.kafka.cluster import KafkaCluster, ScramUser
from pipeline.kafka import Broker, Entry, apply_topics, read_topic
from pipeline.processes import Child
from pipeline.settings.config import load_settings
from pipeline.storage.connect import open_store
from tests.e2e.test_security_store import serve
from tests.e2e.worker_process import TOPICS, build_load, publish, publish_load, stored_samples, wait_until
from tests.support.certificates import Authority
from tests.unit.views.report.regressions import candidate, insert_regression, regression, suspect

pytestmark = pytest.mark.timeout(900)  # several processes each, on a machine that may be busy

BROKER, STORE, TOKEN, KEY = "broker-S3cret/1", "store-S3cret?2", "token-S3cret-3", "key-S3cret-4"
DEADLINE_S = 400
SECRETS = tuple(form for s in (BROKER, STORE, TOKEN, KEY) for form in (s, quote(s, safe="")))


@dataclass
class Program:
    """A ``smidgen`` process whose whole output is kept in a file."""

    arguments: Sequence[str]
    environ: dict[str, str]
    output: Path
    command_lines: list[bytes] = field(default_factory=list)

    def __enter__(self) -> Program:
        command = [sys.executable, "-c", "from pipeline.cli import main; main()", *self.arguments]
        with self.output.open("wb") as file:
            self.process = subprocess.Popen(
                command, env={**os.environ, **self.environ}, stdout=file, stderr=file
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    @property
    def log(self) -> str:
        """Everything it has said so far."""
        return self.output.read_text(errors="replace")

    def look(self) -> None:
        """Note the command lines of the process and of all its children, as process lists show them."""
        found = subprocess.run(
            ["ps", "-ww", "-o", "args=", "--pid", str(self.process.pid), "--ppid", str(self.process.pid)],
            capture_output=True,
            check=False,
        )
        self.command_lines.append(found.stdout)
        self.command_lines.append(Path(f"/proc/{self.process.pid}/cmdline").read_bytes())

    def stop(self) -> int:
        """End it in order and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(240)

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition while the process runs."""
        wait_until(lambda: condition() or self.process.poll() is not None, what)
        assert self.process.poll() is None, self.log


def assert_unseen(*texts: str | bytes) -> None:
    for text in texts:
        shown = text.decode(errors="replace") if isinstance(text, bytes) else text
        for secret in SECRETS:
            assert secret not in shown


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def cluster(kafka_cluster: Callable[..., KafkaCluster], authority: Authority) -> KafkaCluster:
    certificate = authority.issue("broker")
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    listener = {
        **{"ssl.keystore.type": "PEM", "ssl.keystore.location": str(certificate.both)},
        **{"ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority.certificate)},
        **{"sasl.enabled.mechanisms": "SCRAM-SHA-512", "scram-sha-512.sasl.jaas.config": login},
        "ssl.client.auth": "required",
    }
    started = kafka_cluster(
        security_protocol="SASL_SSL",
        listener_properties=listener,
        scram=[ScramUser("smidgen", BROKER, "SCRAM-SHA-512")],
    )
    asyncio.run(apply_topics(started.plain_url, TOPICS))
    return started


@pytest.fixture
def store(authority: Authority, tmp_path: Path) -> Iterator[tuple[Child, str]]:
    """A guarded store, and its DSN without the password."""
    folder = tmp_path / "store"
    folder.mkdir()
    child = serve(folder, authority.issue("store"), STORE)
    url = child.first_line()
    yield child, f"https://smidgen@{url.removeprefix('https://')}/kept?ca_cert={authority.certificate}"
    child.stop()


@pytest.fixture
def environ(
    cluster: KafkaCluster, store: tuple[Child, str], authority: Authority, tmp_path: Path
) -> dict[str, str]:
    """Settings with every secret: two from files, two from the environment."""
    own = authority.issue("own", key_password=KEY)
    (tmp_path / "broker-password").write_text(BROKER + "\n")
    (tmp_path / "token").write_text(TOKEN + "\n")
    given = {
        **{"broker": cluster.url, "broker_security": "sasl_ssl", "broker_ca": authority.certificate},
        **{"broker_cert": own.certificate, "broker_key": own.key, "broker_key_password": KEY},
        **{"sasl_username": "smidgen", "sasl_password_file": tmp_path / "broker-password"},
        **{"store": store[1], "store_password": STORE, "http_token_file": tmp_path / "token"},
        **{"log_level": "debug", "batch_wait": "0.2s"},
    }
    return {f"SMIDGEN_{key.upper()}": str(value) for key, value in given.items()}


def get(url: str, token: str | None) -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def read_all(environ: dict[str, str], topic: str) -> list[Entry]:
    broker = Broker.of(load_settings({}, environ=environ))

    async def read() -> list[Entry]:
        return [entry async for entry in read_topic(broker, TOPICS[topic], from_start=True, follow=False)]

    return asyncio.run(read())


def test_a_worker_shows_no_secret_in_its_whole_life(
    cluster: KafkaCluster,
    store: tuple[Child, str],
    environ: dict[str, str],
    service_name: str,
    tmp_path: Path,
) -> None:
    load = build_load(service_name, 10)
    arguments = ("worker", "all", "--health", "127.0.0.1:0")
    whole = load_settings({}, environ=environ)
    with Program(arguments, environ, tmp_path / "worker.log") as worker:
        worker.wait(lambda: "ready: " in worker.log, "a ready worker")
        worker.look()
        publish_load(cluster.plain_url, load)
        publish(cluster.plain_url, [(b"k", b'{"profile": "no, ' + b"x" * 50)])
        with closing(open_store(whole.store)) as opened:
            worker.wait(lambda: stored_samples(opened, service_name) == load.samples, "all samples")
        worker.wait(lambda: bool(read_all(environ, "dead-letters")), "a dead letter")
        found = re.search(r"health: (http://127\.0\.0\.1:\d+)", worker.log)
        assert found, worker.log
        answers = [
            get(f"{found[1]}/{path}", token)
            for path in ("live", "ready", "metrics")
            for token in (None, "x", TOKEN)
        ]
        assert [status for status, _ in answers] == [401, 401, 200] * 3
        store[0].stop()
        publish_load(cluster.plain_url, build_load(service_name, 3, seed=2))
        worker.wait(lambda: "does not answer" in worker.log, "a failure of the store")
        cluster.kill(0)
        worker.wait(lambda: get(f"{found[1]}/ready", TOKEN)[0] == 503, "an unready worker")
        unready = get(f"{found[1]}/ready", TOKEN)[1]
        worker.look()
        worker.stop()
    assert_unseen(worker.log, unready, *worker.command_lines, *(body for _, body in answers))
    assert len(worker.log) > 1000
    assert b"worker" in worker.command_lines[1]


def test_dead_letters_and_pages_show_no_secret(
    cluster: KafkaCluster, environ: dict[str, str], service_name: str, tmp_path: Path
) -> None:
    settings = load_settings({}, environ=environ)
    found = regression(candidate(), suspect(), service=service_name)
    with closing(open_store(settings.store)) as opened:
        opened.migrate()
        insert_regression(opened, found)
    page = tmp_path / "page.html"
    publish(cluster.plain_url, [(b"k", b"no profile at all")])
    commands = (
        ("report", found.id, "-o", str(page)),
        ("why", "--service", service_name),
        ("store", "migrate"),
        ("topics", "check"),
        ("events", "tail", "--no-follow"),
        ("doctor",),
    )
    outputs: list[str | bytes] = []
    with ExitStack() as running:
        programs = [
            running.enter_context(Program(arguments, environ, tmp_path / f"{arguments[0]}.log"))
            for arguments in commands
        ]
        for program in programs:
            program.look()
        for program in programs:
            code = program.process.wait(DEADLINE_S)
            finds = program.arguments[0] in ("why", "doctor")  # 1 is a finding: of nothing, or of trouble
            assert code == 0 or (finds and code == 1), program.log
            outputs += [program.log, *program.command_lines]
    with Program(("worker", "aggregate"), environ, tmp_path / "worker.log") as worker:
        worker.wait(lambda: bool(read_all(environ, "dead-letters")), "a dead letter")
        worker.stop()
    dead_letters: list[str | bytes] = [
        part
        for dead_letter in read_all(environ, "dead-letters")
        for part in (dead_letter.value or b"", repr(dead_letter.headers))
    ]
    assert dead_letters
    assert_unseen(*outputs, *dead_letters, page.read_text(), worker.log)
    assert "<html" in page.read_text()


DENIALS = {
    "wrong broker password": (
        {"SMIDGEN_SASL_PASSWORD": BROKER + "x", "SMIDGEN_SASL_PASSWORD_FILE": ""},
        "its password",
    ),
    "wrong store password": ({"SMIDGEN_STORE_PASSWORD": STORE + "x"}, "refuses the user or its password"),
    "wrong key password": ({"SMIDGEN_BROKER_KEY_PASSWORD": KEY + "x"}, "does not decrypt it"),
    "no broker": ({"SMIDGEN_BROKER": "127.0.0.1:1"}, "cannot be reached"),
    "store two passwords": ({"SMIDGEN_STORE": f"http://me:{quote(STORE, safe='')}@127.0.0.1:1"}, "given too"),
    "a health endpoint for all": (
        {"SMIDGEN_HTTP_TOKEN_FILE": "", "SMIDGEN_HEALTH": "0.0.0.0:0"},
        "can be reached from other machines",
    ),
    "a secret where a level belongs": ({"SMIDGEN_LOG_LEVEL": TOKEN}, "log_level"),
}


def test_a_refusal_is_one_line_without_a_secret(environ: dict[str, str], tmp_path: Path) -> None:
    with ExitStack() as running:
        programs = {
            name: running.enter_context(
                Program(("worker", "aggregate"), {**environ, **changed}, tmp_path / f"{number}.log")
            )
            for number, (name, (changed, _)) in enumerate(DENIALS.items())
        }
        for program in programs.values():
            program.look()
        for name, program in programs.items():
            assert program.process.wait(DEADLINE_S) == 2, (name, program.log)
            assert len(program.log.splitlines()) == 1, name
            assert DENIALS[name][1] in program.log, name
            assert_unseen(program.log, *program.command_lines)
