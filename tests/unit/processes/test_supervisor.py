"""No background task ends unseen: its failure is logged, counted and shown, and it starts again."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from typing import Never

import pytest

from pipeline.model.errors import StoreUnavailable
from pipeline.processes import TaskSupervisor
from pipeline.processes.supervisor import PROVEN_S, TaskFailed
from tests.support.paths import ROOT

ENDLESS = 3600.0


class Work:
    """Work that fails with each of some errors in turn, and then goes on for ever."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.well = asyncio.Event()

    async def __call__(self) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.well.set()
        await asyncio.sleep(ENDLESS)


@pytest.mark.parametrize(
    ("errors", "problem"),
    [
        ([ValueError("f(a) and f(b) must have different signs")], "refresh: ValueError: f(a) and f(b)"),
        ([StoreUnavailable("no answer")], "refresh: StoreUnavailable: no answer"),
        ([KeyError()], "refresh: KeyError()"),
        ([OSError("a"), OSError("b"), OSError("c")], "refresh: OSError: c (3 times in a row)"),
        ([asyncio.CancelledError()], "refresh: TaskFailed: cancelled from within"),
    ],
    ids=["bug", "foreseen", "without a text", "in a row", "a client's own cancellation"],
)
async def test_a_task_that_fails_starts_again_and_is_shown(
    errors: list[BaseException], problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    tasks, work, failures = TaskSupervisor(first_pause_s=0.001), Work(*errors), len(errors)
    tasks.run("refresh", work)
    await asyncio.wait_for(work.well.wait(), 60)
    assert tasks.problem().startswith(problem)
    with pytest.raises(TaskFailed, match="^refresh: "):
        await tasks.check()
    assert tasks.samples() == [("task_failures_total", {"task": "refresh"}, failures)]
    assert "refresh failed and starts again" in caplog.text
    await tasks.close()


async def test_a_failure_is_past_once_the_task_has_run_for_a_minute() -> None:
    now = 0.0
    tasks, work = TaskSupervisor(first_pause_s=0.001, monotonic=lambda: now), Work(ValueError("once"))
    tasks.run("refresh", work)
    await asyncio.wait_for(work.well.wait(), 60)
    now = PROVEN_S / 2
    assert tasks.problem()
    now = PROVEN_S + 0.002
    assert not tasks.problem()
    await tasks.check()
    await tasks.close()


async def test_a_round_that_works_ends_the_failure(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    tasks, rounds, problems = TaskSupervisor(), 0, []
    worked = asyncio.Event()

    async def work() -> None:
        nonlocal rounds
        rounds += 1
        problems.append(tasks.problem())
        if rounds <= 2:
            raise ValueError(f"round {rounds}")
        if rounds == 4:
            worked.set()

    tasks.repeat("refresh", 0.001, work)
    await asyncio.wait_for(worked.wait(), 60)
    await tasks.close()
    assert problems[:4] == [
        "",
        "refresh: ValueError: round 1",
        "refresh: ValueError: round 2 (2 times in a row)",
        "",
    ]
    assert "refresh works again after 2 failures" in caplog.text


def test_a_failing_thread_starts_again_until_its_work_is_done() -> None:
    tasks, stopping, starts = TaskSupervisor(first_pause_s=0.001), threading.Event(), []

    def work() -> None:
        starts.append(1)
        if len(starts) < 4:
            raise RuntimeError("not yet")

    tasks.run_thread("reader", work, stopping).join(60)
    assert len(starts) == 4
    assert "not yet (3 times in a row)" in tasks.problem()


def test_a_thread_whose_end_fails_ends() -> None:
    tasks, stopping = TaskSupervisor(first_pause_s=0.001), threading.Event()
    stopping.set()

    def work() -> Never:
        raise RuntimeError("cannot close")

    thread = tasks.run_thread("reader", work, stopping)
    thread.join(60)
    assert not thread.is_alive()
    assert "cannot close" in tasks.problem()


async def test_a_task_that_fails_again_and_again_is_logged_ever_more_rarely(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tasks, work = TaskSupervisor(first_pause_s=0.0), Work(*(ValueError("no") for _ in range(100)))
    tasks.run("refresh", work)
    await asyncio.wait_for(work.well.wait(), 60)
    await tasks.close()
    assert len(caplog.records) == 7  # after 1, 2, 4 … 64 failures


async def test_a_cancelled_task_ends_and_the_others_go_on() -> None:
    tasks, first, second = TaskSupervisor(), Work(), Work()
    task = tasks.run("first", first)
    tasks.run("second", second)
    await asyncio.wait_for(asyncio.gather(first.well.wait(), second.well.wait()), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not tasks.problem()
    await asyncio.wait_for(tasks.close(), 60)


FOR_A_TIME = {
    "agents/experiments/replay/connection.py": "a connection of a replay, whose error its waiter gets",
    "agents/experiments/replay/recorder.py": "guards and counts every write; inside an application",
    "agents/experiments/replay/replayer.py": "one request, which has a timeout",
    "agents/host/process_sampling.py": "one process; its failure is logged, counted, and tried again",
    "agents/inprocess/outbox.py": "inside an application, without this package: tries again itself",
    "agents/inprocess/sampling.py": "inside an application, without this package: tries again itself",
    "agents/publishing/page.py": "an event loop; aiohttp logs the errors of requests",
    "agents/publishing/publisher.py": "a thread of one supervised task, and a send that is awaited",
    "agents/sampling/kernels/async_profiler.py": "one run; its failure is the run's",
    "agents/sampling/kernels/perf.py": "the start of one run",
    "agents/sampling/kernels/stream.py": "the output of one run",
    "agents/webhooks/receiver.py": "one delivery, which its sender waits for",
    "agents/webhooks/sending.py": "the close of one connection",
    "loadgen/bench/dashboard.py": "a server whose end is the bench's",
    "loadgen/bench/gateway/command.py": "one outage, awaited",
    "loadgen/bench/live/programs.py": "a program that is sampled, in a process of its own",
    "loadgen/bench/overhead/blocks.py": "one block, joined",
    "loadgen/bench/sampled_program.py": "a program that is sampled",
    "loadgen/demo/driver.py": "a group of tasks: a failure is the group's",
    "loadgen/demo/tasks.py": "tasks whose failure ends the demo",
    "loadgen/harness/workers.py": "ends its process",
    "pipeline/commands/terminal.py": "lines of progress, joined",
    "pipeline/delivery/alerts/desk.py": "messages of one target; an error is logged, counted and tried again",
    "pipeline/kafka/connection.py": "a close, awaited",
    "pipeline/kafka/publisher.py": "an attempt, awaited",
    "pipeline/processes/child.py": "the end and the output of one child",
    "pipeline/processes/interruption.py": "the main work, awaited",
    "pipeline/processes/supervisor.py": "the supervisor",
    "pipeline/worker/checks.py": "one question, whose error its waiter gets",
    "pipeline/worker/loop.py": "one call, awaited",
    "pipeline/worker/service.py": "the apps, whose end is looked for, and steps of the end, awaited",
}
"""Modules that start tasks or threads by themselves, and why those do not run as long as their process."""

STARTS = re.compile(r"create_task\(|ensure_future\(|threading\.Thread\(|[^.\w]Thread\(|\bTimer\(")


def test_only_the_supervisor_starts_tasks_that_run_as_long_as_their_process() -> None:
    starting = {
        str(path.relative_to(ROOT))
        for folder in ("agents", "loadgen", "pipeline")
        for path in (ROOT / folder).rglob("*.py")
        if STARTS.search(path.read_text(encoding="utf-8"))
    }
    assert starting == FOR_A_TIME.keys()
