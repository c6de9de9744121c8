"""README's quick start, word for word: it ends with an event of the reader's own service."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.alert_receivers import HttpReceiver

ROOT = Path(__file__).parents[2]
SETUP = "make setup && . .venv/bin/activate"
"""What every terminal begins with: done for whoever runs this test."""

READY_S = 240.0
EVENT_S = 90.0
ATTEMPTS = 3
"""On a busy machine a minute of a service may hold too few samples: another is run, twice as long."""

EVENT = r"shop\.total .*\n(.*\n)*?  id +(\S+)\n  page +(\S+)"


def commands() -> list[str]:
    """The lines of the block, without what is said about them."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = text.split("## Quick start")[1].split("```")[1]
    return [line.partition("#")[0].strip() for line in block.strip().splitlines()]


def _heed_interrupts() -> None:
    """Let Ctrl-C end a line even if whoever runs the tests ignores it, as a shell does in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    """One terminal: it runs a line of the block in a folder that looks like the repository's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "docs").symlink_to(ROOT / "docs")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        clean = {name: value for name, value in os.environ.items() if not name.startswith("SMIDGEN_")}
        self.environment = clean | {"PATH": path, "XDG_RUNTIME_DIR": str(folder / "runtime")}

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a line to its end."""
        return subprocess.run(
            ["bash", "-c", line], cwd=self.folder, env=self.environment, capture_output=True, text=True
        )

    @contextmanager
    def keep(self, line: str, name: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run a line until Ctrl-C; its output goes into NAME.out and NAME.err."""
        with (self.folder / f"{name}.out").open("wb") as out, (self.folder / f"{name}.err").open("wb") as err:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {line}"],
                cwd=self.folder,
                env=self.environment,
                stdout=out,
                stderr=err,
                preexec_fn=_heed_interrupts,  # noqa: PLW1509
            )
            try:
                yield process
            finally:
                process.send_signal(signal.SIGINT)
                process.wait(240)

    def await_match(self, pattern: str, name: str, within_s: float) -> re.Match[str] | None:
        """Wait until the output of a line that is kept has a pattern; None if it does not in time."""
        deadline = time.monotonic() + within_s
        while not (found := re.search(pattern, self.said(name), re.MULTILINE)):
            if time.monotonic() > deadline:
                return None
            time.sleep(0.5)
        return found

    def wait_for(self, pattern: str, name: str, within_s: float) -> re.Match[str]:
        """Wait likewise, and fail without it."""
        found = self.await_match(pattern, name, within_s)
        if not found:
            pytest.fail(f"no {pattern!r} within {within_s:g} s in {self.said(name)}\n{self.said('tail.err')}")
        return found

    def said(self, name: str) -> str:
        """What came so far."""
        return (self.folder / name).read_text(encoding="utf-8")


def await_alert(receiver: HttpReceiver, subroutine: str) -> dict[str, Any]:
    """Wait for an alert on a subroutine; before it others may come, as of a service that is run again."""
    deadline = time.monotonic() + READY_S
    while True:
        for alert in receiver.sent("POST", "/"):
            if subroutine in alert["title"]:
                return dict(alert)
        assert time.monotonic() < deadline, receiver.requests
        time.sleep(0.2)


RULES = """dashboard_url: {dashboard}
targets:
  hook: {{kind: webhook, url: "{receiver}"}}
rules:
  - {{to: [hook]}}
"""


@pytest.mark.timeout(1800)
def test_the_quick_start_ends_with_an_event_and_its_page(tmp_path: Path) -> None:
    setup, up, tail, service, slower, report = commands()
    assert setup == SETUP
    terminal = Terminal(tmp_path)
    with HttpReceiver() as receiver, terminal.keep(up, "up") as running:
        terminal.wait_for("^Ready", "up.out", READY_S)
        rules = tmp_path / "alerts.yaml"
        dashboard = terminal.wait_for(r"^dashboard +(\S+)", "up.out", READY_S).group(1)
        rules.write_text(RULES.format(dashboard=dashboard, receiver=receiver.url))
        alerts = "smidgen alerts run --rules alerts.yaml"
        with terminal.keep(tail, "tail"), terminal.keep(alerts, "alerts"):
            terminal.wait_for("no profiles have come yet", "tail.err", READY_S)
            for attempt in range(ATTEMPTS):
                name = f"mine{attempt or ''}"
                for line in (service, slower):
                    longer = line.replace(" 60", f" {60 * 2**attempt}")
                    ended = terminal.run(longer.replace("--service mine ", f"--service {name} "))
                    assert ended.returncode == 0, ended.stderr
                if event := terminal.await_match(EVENT, "tail.out", EVENT_S):
                    break
            assert event, terminal.said("tail.err")
            with urllib.request.urlopen(event.group(3)) as shown:
                assert "shop.total" in shown.read().decode()
            alert = await_alert(receiver, "shop.total")
            assert alert["occasion"] == "detected"
            with urllib.request.urlopen(alert["link"]) as shown:
                assert "shop.total" in shown.read().decode()
            terminal.wait_for("mine is judged by live", "tail.err", READY_S)
            drawn = terminal.run(report.replace("ID", event.group(2)))
            assert drawn.returncode == 0, drawn.stderr
    page = (tmp_path / "event.html").read_text(encoding="utf-8")
    assert "shop.total" in page
    waited = terminal.said("tail.err")
    assert "mine is not judged yet by live, no_" in waited
    assert running.returncode == 0, terminal.said("up.err")
    assert not list((tmp_path / "runtime" / "smidgen").iterdir())
    assert terminal.run(tail + " --no-follow").returncode == 2  # what has ended is not found any more
