"""Which test file each process runs next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.support.scheduling import WaitingBesideCounting, counting_worker

TESTS = [
    f"tests/{file}.py::test_{number}"
    for file in ("unit/a", "e2e/a", "unit/b", "e2e/b", "e2e/c", "unit/c", "unit/d", "e2e/d")
    for number in range(4)
]


class Node:
    """A process: it does what it is sent when asked to."""

    def __init__(self, number: int) -> None:
        self.gateway = SimpleNamespace(id=f"gw{number}")
        self.shutting_down = False
        self.sent: list[int] = []

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        self.sent += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def files_of_each(processes: int) -> list[list[str]]:
    """Return the files that each process ran, where all are equally fast."""
    config = SimpleNamespace(getvalue=lambda _name: ["popen"] * processes)
    config.option = SimpleNamespace(loadscopereorder=False)
    log = SimpleNamespace(loadscopesched=print, loadfilesched=print)
    scheduler = WaitingBesideCounting(cast(Any, config), cast(Any, log), lambda file: "e2e" in file)
    nodes = [Node(number) for number in range(processes)]
    for node in nodes:
        scheduler.add_node(cast(Any, node))
        scheduler.add_node_collection(cast(Any, node), TESTS)
    scheduler.schedule()
    done = [0] * processes
    while any(done[number] < len(node.sent) for number, node in enumerate(nodes)):
        for number, node in enumerate(nodes):
            if done[number] < len(node.sent):
                scheduler.mark_test_complete(cast(Any, node), node.sent[done[number]])
                done[number] += 1
    assert sorted(index for node in nodes for index in node.sent) == list(range(len(TESTS)))
    return [list(dict.fromkeys(map(_file, node.sent))) for node in nodes]


def _file(index: int) -> str:
    return TESTS[index].removeprefix("tests/").partition(".py")[0]


def test_one_process_counts_while_the_others_wait() -> None:
    first, *others = files_of_each(3)
    assert first[:3] == ["unit/a", "unit/b", "unit/c"]
    assert [files[:2] for files in others] == [["e2e/a", "e2e/c"], ["e2e/b", "e2e/d"]]


def test_who_is_through_helps_with_the_rest() -> None:
    counting = [file for files in files_of_each(5)[1:] for file in files if file.startswith("unit")]
    assert counting


def test_of_two_processes_none_is_kept_for_one_kind() -> None:
    assert [files[0] for files in files_of_each(2)] == ["e2e/a", "e2e/b"]


@pytest.mark.parametrize(
    ("environment", "counts"),
    [
        pytest.param({}, False, id="alone"),
        pytest.param({"PYTEST_XDIST_WORKER": "gw0", "PYTEST_XDIST_WORKER_COUNT": "2"}, False, id="two"),
        pytest.param({"PYTEST_XDIST_WORKER": "gw0", "PYTEST_XDIST_WORKER_COUNT": "3"}, True, id="the first"),
        pytest.param({"PYTEST_XDIST_WORKER": "gw1", "PYTEST_XDIST_WORKER_COUNT": "3"}, False, id="another"),
    ],
)
def test_which_process_counts(environment: Mapping[str, str], counts: bool) -> None:
    assert counting_worker(environment) == counts
