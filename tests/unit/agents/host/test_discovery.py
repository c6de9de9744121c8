"""Scans of a made-up /proc: what is found, followed, recognised, and how little is read for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agents.host.discovery import TURNS, Discovery
from agents.host.rules import Condition, How, ProcessRule
from tests.unit.agents.host.proc_tree import CountingReader, ProcTree

OWN = 900
SHOP = ProcessRule(Condition(command=re.compile("shop")), service="shop")


@pytest.fixture
def tree(tmp_path: Path) -> ProcTree:
    tree = ProcTree(tmp_path)
    tree.add(1, "init")
    tree.add(2, "", name="kthreadd")
    tree.add(10, "python shop", cpu_s=99.9)
    tree.add(OWN, "smidgen agent host", cpu_s=1.0, children_cpu_s=2.0)
    return tree


def discovery(tree: ProcTree, *rules: ProcessRule) -> tuple[Discovery, CountingReader]:
    reader = tree.reader()
    return Discovery(reader, rules or (SHOP,), own_pid=OWN), reader


def pids(found: Discovery) -> list[int]:
    return [each.pid for each in found.scan().matched]


def test_a_scan_finds_what_rules_take_and_says_why_not_the_rest(tree: ProcTree) -> None:
    scan = discovery(tree)[0].scan()
    assert [(each.key, each.command) for each in scan.matched] == [((10, 1.0), "python shop")]
    assert scan.matched[0].cpu_share == pytest.approx(0.1)
    assert {each.pid: each.decision.reason for each in scan.passed} == {1: "no_rule"}


def test_processes_are_followed_as_they_start_and_end(tree: ProcTree) -> None:
    found, _ = discovery(tree)
    assert pids(found) == [10]
    tree.add(11, "python shop worker", started=990.0)
    assert pids(found) == [10, 11]
    tree.end(10)
    tree.add(11, "python shop worker", started=990.0, state="Z")
    assert pids(found) == []


def test_a_process_may_become_another(tree: ProcTree) -> None:
    found, _ = discovery(tree)
    (before,) = found.scan().matched
    tree.add(10, "python shop", started=999.0)  # the pid was given again
    (after,) = found.scan().matched
    assert before.key != after.key
    tree.add(12, "sh -c start", started=999.0)
    assert pids(found) == [10]
    tree.add(12, "python shop", started=999.0)  # a young one becomes another program
    assert pids(found) == [10, 12]
    tree.add(12, "java mail", name="java")  # another name is another program at any age
    tree.add(10, "python mail", started=999.5)
    assert pids(found) == []


def test_only_new_processes_are_read_in_full(tree: ProcTree) -> None:
    for pid in range(100, 200):
        tree.add(pid, "sleep")
    found, reader = discovery(tree)
    found.scan()
    assert len(reader.in_full) == 104
    reader.in_full.clear()
    reader.stats.clear()
    tree.add(300, "sleep", started=999.0)
    for _ in range(TURNS):
        tree.uptime_s += 5
        found.scan()
    assert set(reader.in_full) == {300}
    assert len(reader.in_full) <= 3
    others = [pid for pid in reader.stats if 100 <= pid < 200]
    assert sorted(others) == list(range(100, 200))


def test_the_agent_and_what_it_started_are_not_sampled_and_their_cost_is_added_up(tree: ProcTree) -> None:
    found, _ = discovery(tree, ProcessRule(service="all"))
    tree.add(901, "py-spy record", parent=OWN, cpu_s=0.5, started=2.0)
    tree.add(902, "helper", parent=901, cpu_s=0.25, started=2.0)
    scan = found.scan()
    assert [each.pid for each in scan.matched] == [1, 10]
    assert scan.own_cpu_s == pytest.approx(3.75)
    tree.add(901, "py-spy record", parent=OWN, cpu_s=1.5, started=2.0)
    assert found.scan().own_cpu_s == pytest.approx(4.75)


def test_use_of_cpu_is_that_since_the_scan_before(tree: ProcTree) -> None:
    found, _ = discovery(tree)
    found.scan()
    tree.uptime_s += 10
    tree.add(10, "python shop", cpu_s=119.9)
    assert found.scan().matched[0].cpu_share == pytest.approx(2.0)


def test_what_is_sampled_with_a_parent_is_not_sampled_twice(tree: ProcTree) -> None:
    found, _ = discovery(tree, ProcessRule(SHOP.condition, service="shop", how=How(subprocesses=True)))
    tree.add(11, "sh", parent=10)
    tree.add(12, "python shop worker", parent=11)
    scan = found.scan()
    assert [each.pid for each in scan.matched] == [10]
    assert scan.covered == 1


def test_other_rules_count_from_the_next_scan(tree: ProcTree) -> None:
    found, _ = discovery(tree)
    assert pids(found) == [10]
    found.use([ProcessRule(ignore=True)])
    scan = found.scan()
    assert scan.matched == ()
    assert {each.decision.reason for each in scan.passed} == {"ignored"}


def test_a_tree_that_cannot_be_read_is_none(tree: ProcTree) -> None:
    for name in ("cmdline", "environ", "cgroup", "status"):
        (tree.root / "10" / name).unlink()
    (tree.root / "10" / "exe").unlink()
    facts = tree.reader().facts(10)
    assert (facts.command, facts.executable, facts.cgroup, dict(facts.environment)) == ("", "", "", {})
    (tree.root / "10" / "stat").write_text("cut (off")
    assert tree.reader().stat(10) is None


def test_a_name_may_hold_anything(tree: ProcTree) -> None:
    tree.add(13, "x", name="a) S 1 (b", parent=7)
    stat = tree.reader().stat(13)
    assert stat
    assert (stat.name, stat.parent) == ("a) S 1 (b", 7)
