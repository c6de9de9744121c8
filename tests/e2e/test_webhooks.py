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
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pipeline.messages.inputs import decode_feedback
from pipeline.messages.records import columns_of
from pipeline.model import Verdict
from pipeline.storage.connect import open_store
from tests.e2e.test_agent import changes_of, consume, environment, wait_until
from tests.support.repositories import Work

pytestmark = pytest.mark.e2e

SECRET = "correct horse battery staple"
TIMEOUT_S = 240.0

Start = Callable[..., tuple[subprocess.Popen[str], str]]


@pytest.fixture
def webhooks(tmp_path: Path) -> Iterator[Start]:
    """Starts ``smidgen agent webhooks`` for a service and returns it with its address."""
    started: list[subprocess.Popen[str]] = []

    def start(broker: str, service: str, clone: Path, **answers: Any) -> tuple[subprocess.Popen[str], str]:
        services = tmp_path / "services.yaml"
        source: dict[str, Any] = {"forge": "github", "secret_env": "HOOK_SECRET"}
        source["repository_path"] = str(clone)
        if answers:
            source["answers"] = {"targets": ["pull-requests"]}
        deploys = [{"service": service, "branch": "main"}]
        services.write_text(json.dumps({"repositories": {"acme/shop": {**source, "deploys": deploys}}}))
        command = [sys.executable, "-c", "from pipeline.cli import main; main()", "agent", "webhooks"]
        process = subprocess.Popen(
            [*command, "--service-map", str(services), "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**environment(broker), "HOOK_SECRET": SECRET, **answers},
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


def post(url: str, payload: object, secret: str = SECRET, event: str = "push") -> tuple[int, str]:
    body = json.dumps(payload).encode()
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {"X-GitHub-Event": event, "X-GitHub-Delivery": "1", "X-Hub-Signature-256": f"sha256={digest}"}
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


def test_a_reply_to_an_alert_and_a_closed_issue_become_verdicts(
    broker: str, store_dsn: str, service_name: str, webhooks: Start, work: Work
) -> None:
    event = f"c0ffee{service_name}"
    about = {"service": service_name, "time": PUSHED_AT, "event": event, "regression": event, "id": event}
    state = {"target": "pull-requests", "manner": "single", "state": "sent", "partition": 0, "thread": "7"}
    times = {"due_time": PUSHED_AT, "changed_time": PUSHED_AT, "detail": "", "content": "{}"}
    with closing(open_store(store_dsn)) as store:
        store.insert("alerts", columns_of([{**about, **state, **times}]))
    process, url = webhooks(broker, service_name, work.path, SMIDGEN_STORE=store_dsn)
    created = datetime.fromtimestamp(PUSHED_AT, UTC).isoformat()
    comment = {"user": {"login": "ada", "type": "User"}, "author_association": "OWNER", "created_at": created}
    payload = {"action": "created", "issue": {"number": 7}, "repository": {"full_name": "acme/shop"}}
    reply = {**payload, "comment": {**comment, "body": "/smidgen false it was the load test"}}
    unclear = {**payload, "comment": {**comment, "body": "/smidgen what is this"}}
    assert post(url, reply, secret="guess", event="issue_comment")[0] == 401
    published = (200, "published 1 verdict for a reply on 7 of acme/shop\n")
    assert post(url, reply, event="issue_comment") == published
    assert post(url, reply, event="issue_comment") == (200, "already published\n")
    assert post(url, unclear, event="issue_comment") == (200, "unclear: no verdict\n")
    issue = {
        "number": 7,
        "closed_at": created,
        "state_reason": "not_planned",
        "labels": [{"name": "expected"}],
    }
    closed = {**payload, "action": "closed", "issue": issue, "sender": {"login": "ada", "type": "User"}}
    assert post(url, closed, secret="guess", event="issues")[0] == 401
    published = (200, "published 1 verdict for the closing of 7 of acme/shop\n")
    assert post(url, closed, event="issues") == published
    assert post(url, closed, event="issues") == (200, "already published\n")
    with urllib.request.urlopen(f"{url}/metrics", timeout=TIMEOUT_S) as answer:
        counted = answer.read().decode()
    assert 'smidgen_replies_total{outcome="answered"} 2.0\n' in counted
    assert 'smidgen_replies_total{outcome="unclear"} 1.0\n' in counted
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=TIMEOUT_S)
    found = [one for one in consume(broker, "feedback", decode_feedback) if one.service == service_name]
    assert found == [
        Verdict(event, service_name, "false", float(PUSHED_AT), "ada", comment="it was the load test"),
        Verdict(
            event,
            service_name,
            "expected",
            PUSHED_AT - 60.0,
            "ada",
            comment="closed as not planned, expected",
        ),
    ]


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
