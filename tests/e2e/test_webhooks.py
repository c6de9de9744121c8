"""Webhooks from the network to the broker."""

from __future__ import annotations

import hashlib
import hmac
import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_agent import changes_of, environment, wait_until
from tests.support.repositories import Work

pytestmark = pytest.mark.e2e

SECRET = "correct horse battery staple"
TIMEOUT_S = 60.0

Start = Callable[..., tuple[subprocess.Popen[str], str]]


@pytest.fixture
def webhooks(tmp_path: Path) -> Iterator[Start]:
    """Starts ``smidgen agent webhooks`` for a service and returns it with its address."""
    started: list[subprocess.Popen[str]] = []

    def start(broker: str, service: str, clone: Path) -> tuple[subprocess.Popen[str], str]:
        services = tmp_path / "services.yaml"
        source = {"forge": "github", "secret_env": "HOOK_SECRET", "repository_path": str(clone)}
        deploys = [{"service": service, "branch": "main"}]
        services.write_text(json.dumps({"repositories": {"acme/shop": {**source, "deploys": deploys}}}))
        command = [sys.executable, "-c", "from pipeline.cli import main; main()", "agent", "webhooks"]
        process = subprocess.Popen(
            [*command, "--service-map", str(services), "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**environment(broker), "HOOK_SECRET": SECRET},
        )
        started.append(process)
        assert process.stdout
        first = process.stdout.readline()
        assert first.startswith("listening on http://127.0.0.1:"), process.communicate()
        return process, first.split()[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def work(tmp_path: Path) -> Work:
    work = Work(tmp_path / "clone")
    work.commit("Old", {"shop.py": "def price(): return 1\n"})
    work.commit("New", {"shop.py": "def price(): return 2\n"})
    return work


PUSHED_AT = int(time.time()) - 60


def push(work: Work) -> dict[str, Any]:
    before, after = work.git("rev-parse", "HEAD~1"), work.git("rev-parse", "HEAD")
    head = {"id": after, "message": "New", "author": {"name": "Ada"}, "modified": ["shop.py"]}
    where = {"ref": "refs/heads/main", "before": before, "after": after}
    repository = {"full_name": "acme/shop", "pushed_at": PUSHED_AT}
    return {**where, "commits": [head], "head_commit": head, "repository": repository}


def post(url: str, payload: object, secret: str = SECRET) -> tuple[int, str]:
    body = json.dumps(payload).encode()
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {"X-GitHub-Event": "push", "X-GitHub-Delivery": "1", "X-Hub-Signature-256": f"sha256={digest}"}
    request = urllib.request.Request(f"{url}/github", data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_signed_push_arrives_as_a_change(
    broker: str, service_name: str, webhooks: Start, work: Work
) -> None:
    process, url = webhooks(broker, service_name, work.path)
    assert post(url, push(work), secret="guess") == (401, "wrong or missing signature\n")
    assert post(url, push(work)) == (200, "published 1 changes for branch 'main' of acme/shop\n")
    assert post(url, push(work)) == (200, "already published\n")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, out) == (0, "")
    assert SECRET not in err
    assert "wrong or missing signature" in err
    assert "Traceback" not in err
    (change,) = changes_of(broker, service_name)
    assert change.id == push(work)["after"]
    assert (change.title, change.time, change.subroutines) == ("New", float(PUSHED_AT), ("shop.price",))


def test_without_a_broker_the_sender_is_reported_to_try_again(
    service_name: str, webhooks: Start, work: Work
) -> None:
    process, url = webhooks("127.0.0.1:1", service_name, work.path)
    assert post(url, push(work)) == (503, "not published, try again\n")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0
    assert "cannot be reached" in err


def test_following_a_branch_publishes_each_commit_once(
    broker: str, service_name: str, work: Work, tmp_path: Path
) -> None:
    program = [sys.executable, "-c", "from pipeline.cli import main; main()", "changes"]
    where = ["--repo", str(work.path), "--service", service_name, "--state", str(tmp_path / "state.json")]
    command = [*program, *where, "--branch", "main", "--follow", "0.1s"]

    def follow(title: str) -> None:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment(broker))
        try:
            assert process.stdout
            if not (tmp_path / "state.json").exists():
                wait_until((tmp_path / "state.json").exists)
                work.commit(title)
            assert title in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=TIMEOUT_S)
            assert process.returncode == 0
        finally:
            process.kill()

    follow("Third")
    work.commit("Fourth")
    follow("Fourth")
    assert sorted(change.title for change in changes_of(broker, service_name)) == ["Fourth", "Third"]
