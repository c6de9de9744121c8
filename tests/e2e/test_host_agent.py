"""The host agent against real processes of two services, py-spy and a broker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pipeline.model import Profile
from tests.e2e.test_agent import TIMEOUT_S, environment, inclusive, profiles_of, wait_until

pytestmark = pytest.mark.e2e

BURNER = """
import sys
def total(n):
    return sum(i * i for i in range(n))
while True:
    total(20_000)
"""

RULES = """
interval: 1s
scan: 500ms
budget: 100%
spool: spool
rules:
  - match: {{command: '{folder}', environment: {{SERVICE: }}}}
    service: ${{env:SERVICE}}
    release: ${{env:VERSION}}
    rate: 50
"""


class Burners:
    """Processes of services that burn CPU."""

    def __init__(self, folder: Path) -> None:
        self._program = folder / "burner.py"
        self._program.write_text(BURNER)
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, service: str, version: str) -> subprocess.Popen[bytes]:
        variables = {**os.environ, "SERVICE": service, "VERSION": version}
        process = subprocess.Popen(["nice", sys.executable, str(self._program)], env=variables)
        self._started.append(process)
        return process

    def end(self) -> None:
        for process in self._started:
            process.kill()
            process.wait()


@pytest.fixture
def burners(tmp_path: Path) -> Iterator[Burners]:
    started = Burners(tmp_path)
    yield started
    started.end()


def samplers(agent: subprocess.Popen[str], process: subprocess.Popen[bytes]) -> list[str]:
    """Return the ids of programs by which an agent samples a process."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if parent == str(agent.pid) and str(process.pid).encode() in words:
                found.append(entry.name)
    return found


def sampled(profiles: list[Profile]) -> int:
    return sum(int(profile.counts.sum()) for profile in profiles)


def test_processes_of_services_are_followed_as_they_start_and_end(
    broker: str, service_name: str, tmp_path: Path, burners: Burners
) -> None:
    shop, mail = f"{service_name}-shop", f"{service_name}-mail"
    rules = tmp_path / "host.yaml"
    rules.write_text(RULES.format(folder=tmp_path))
    burners.start(shop, "v1")
    command = [sys.executable, "-c", "from pipeline.cli import main; main()", "agent", "host"]
    agent = subprocess.Popen(
        [*command, "--rules", str(rules), "--host", "h1"],
        stderr=subprocess.PIPE,
        text=True,
        env=environment(broker),
    )
    try:
        wait_until(lambda: sampled(profiles_of(broker, shop)) > 0)
        second, other = burners.start(shop, "v1"), burners.start(mail, "v2")
        wait_until(lambda: sampled(profiles_of(broker, mail)) > 0)
        other.kill()
        second.kill()
        wait_until(lambda: not samplers(agent, other))
        rules.write_text("rules: [{servise: x}]")
        agent.send_signal(signal.SIGHUP)
        before = len(profiles_of(broker, shop))
        wait_until(lambda: len(profiles_of(broker, shop)) > before + 1)
        ended = time.time()
        agent.send_signal(signal.SIGTERM)
        _, err = agent.communicate(timeout=TIMEOUT_S)
    finally:
        agent.kill()
        agent.wait()

    assert agent.returncode == 0, err
    assert err.count("the rules stay as they were") == 1
    assert "servise: unknown key" in err
    assert "Traceback" not in err
    of_shop, of_mail = profiles_of(broker, shop), profiles_of(broker, mail)
    assert {(each.release, each.rate_hz, each.host) for each in of_shop} == {("v1", 50, "h1")}
    assert {each.release for each in of_mail} == {"v2"}
    assert inclusive(of_shop)["burner.total"] > 0
    assert of_mail[-1].end < ended
    assert list((tmp_path / "spool").glob("*.spool")) == []
