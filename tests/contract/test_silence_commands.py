"""``smidgen expect`` and ``smidgen mute`` as typed, over a shared store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest

from agents.commands import silences
from pipeline.cli import run
from pipeline.commands import request
from pipeline.messages.inputs import decode_feedback, silence_to_row
from pipeline.messages.records import columns_of
from pipeline.model import Outgoing, Silence
from pipeline.storage.connect import open_store

NOW = 1_790_000_000.0


class Typed:
    """A terminal: what is published goes to the store, as aggregate brings it there."""

    def __init__(self, dsn: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.dsn, self.capsys = dsn, capsys
        self.published: list[Silence] = []

    def publish(self, messages: Sequence[Outgoing], *_: Any) -> None:
        for message in messages:
            assert (message.topic, message.key) == ("feedback", decode_feedback(message.value).service)
            said = decode_feedback(message.value)
            assert isinstance(said, Silence)
            self.published.append(said)
            with closing(open_store(self.dsn)) as store:
                store.insert("silences", columns_of([silence_to_row(said)]))

    def __call__(self, line: str, *more: str) -> tuple[int, str, str]:
        code = run([*line.split(), *more])
        output = self.capsys.readouterr()
        return code, output.out, output.err

    def listed(self, what: str, service: str, *more: str) -> list[str]:
        code, out, _ = self(f"{what} list --service {service} --store", self.dsn, *more)
        assert code == 0
        return out.splitlines()


@pytest.fixture
def typed(store_dsn: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Typed:
    typed = Typed(store_dsn, capsys)
    monkeypatch.setattr(silences, "publish_once", typed.publish)
    for module in (silences, request):
        monkeypatch.setattr(module, "system_clock", lambda: NOW)
    return typed


def test_a_mute_is_published_listed_and_taken_back(typed: Typed, service_name: str) -> None:
    given = f"mute --service {service_name} --subroutine shop.* --until 2h --owner ada"
    code, out, _ = typed(given, "--reason", "load test")
    (muted,) = typed.published
    assert code == 0
    assert (muted.kind, muted.time, muted.start, muted.end) == ("muted", NOW, NOW, NOW + 7200)
    assert (muted.owner, muted.subroutine, muted.reason) == ("ada", "shop.*", "load test")
    assert out.startswith(f"{muted.id}  {service_name}  shop.*  from 2026-09-21 14:13 UTC  until ")
    assert typed.listed("mute", service_name) == out.splitlines()
    assert typed.listed("expect", service_name) == []
    code, out, _ = typed(f"mute remove {muted.id[:9]} --service {service_name} --store", typed.dsn)
    assert (code, typed.published[-1].removed, typed.published[-1].id) == (0, NOW, muted.id)
    assert typed.listed("mute", service_name) == []
    assert "taken back" in typed.listed("mute", service_name, "--all")[0]
    assert typed(f"mute remove {muted.id} --store", typed.dsn)[0] == 2


def test_a_cost_is_announced_for_names_or_for_a_change(typed: Typed, service_name: str) -> None:
    assert typed(f"expect --service {service_name} --subroutine shop.price --cost 0.1%")[0] == 0
    given = (
        f"expect --service {service_name} --change 8f2c11d0 --cost 2.5% --from 2026-09-22 --until 1800000000"
    )
    assert typed(given)[0] == 0
    first, second = typed.published
    assert (first.kind, first.cost, first.subroutine, first.end) == ("expected", 0.001, "shop.price", None)
    assert (second.change, second.cost) == ("8f2c11d0", 0.025)
    assert (second.start, second.end) == (1_790_035_200.0, 1_800_000_000.0)
    lines = typed.listed("expect", service_name)
    assert "0.1 %" in "".join(lines)
    assert "2.5 %  of change 8f2c11d0" in "".join(lines)
    (row, _) = typed.listed("expect", service_name, "--json")
    assert json.loads(row)["service"] == service_name


def test_a_cost_of_a_metric_is_in_its_unit_or_a_share_of_its_level(typed: Typed, service_name: str) -> None:
    for cost in ("+10%", "20", "2.5 %"):
        assert typed(f"expect --service {service_name} --metric latency --cost", cost)[0] == 0
    assert [(one.cost, one.measure, one.subroutine) for one in typed.published] == [
        (0.1, "relative", "latency"),
        (20.0, "metric", "latency"),
        (0.025, "relative", "latency"),
    ]
    lines = "".join(typed.listed("expect", service_name))
    assert "10 % of its level" in lines
    assert "20 in its unit" in lines


def test_nothing_is_published_to_look_at_it(typed: Typed) -> None:
    code, out, _ = typed("mute --service shop --until 2h --owner ada --dry-run --json")
    assert (code, typed.published, json.loads(out)["end"]) == (0, [], NOW + 7200)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("mute", "give --service, --until and --owner: a mute has an end and an owner"),
        ("mute --service shop --until 2h", "give --service, --until and --owner"),
        ("mute --service shop --owner ada", "give --service, --until and --owner"),
        ("mute --service shop --owner ada --until 2020-01-01", "--until: lies in the past"),
        ("mute --service shop --owner ada --until 7200", "or a duration from now such as 2h"),
        ("mute --service shop --owner ada --until soon", "or a duration from now such as 2h"),
        ("mute --service shop --owner ada --until 1h --from 2h", "end: should be after start"),
        ("mute --service a/b --owner ada --until 1h", "should be of a-z"),
        ("mute remove", "Missing argument 'ID'"),
        ("mute remove mute-none --store {dsn}", "no mute 'mute-none'"),
        ("expect", "give --service, --cost, and --subroutine, --change or --metric"),
        (
            "expect --service shop --cost 0.1%",
            "give --service, --cost, and --subroutine, --change or --metric",
        ),
        ("expect --service shop --cost +10% --subroutine a", "for a service-level metric give --metric"),
        ("expect --service shop --cost 20ms --metric a", "such as +10%, or a number in its unit, not '20ms'"),
        ("expect --service shop --cost 0 --metric a", "such as +10%, or a number in its unit"),
        ("expect --service shop --cost 5% --metric a --subroutine b", "--metric: stands alone"),
        ("expect --service shop --cost 0.1 --subroutine a", "such as 0.1%, not '0.1'"),
        ("expect --service shop --cost 101% --subroutine a", "such as 0.1%"),
        ("expect --service shop --cost 0% --subroutine a", "such as 0.1%"),
        ("expect --service shop --cost \u0663% --subroutine a", "such as 0.1%"),
        ("expect --service shop --cost 1% --change |", "give --service, --cost, and"),
        ("expect --service shop --cost 1% --change | ", "'--change': should be a change's id"),
        ("expect --service shop --cost 1% --change |8f2c11d0\n", "'--change': should be a change's id"),
        ("expect --service shop --cost 1% --change |8f2c\u202e", "'--change': should be a change's id"),
        ("mute --service shop --owner ada --until \u0663h", "or a duration from now such as 2h"),
        (
            "mute --service shop --until 2h --owner ada list --store {dsn}",
            "--service: give the options of 'list' after it",
        ),
        ("mute --dry-run remove mute-1 --store {dsn}", "--dry-run: give the options of 'remove' after it"),
        ("expect --cost 1% list --store {dsn}", "--cost: give the options of 'list' after it"),
        ("expect --log-level info list --store {dsn}", "--log-level: give the options of 'list' after it"),
        ("expect forget x", "No such command 'forget'"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(typed: Typed, line: str, reason: str) -> None:
    """What follows a | is one value as it stands."""
    words, bar, value = line.format(dsn=typed.dsn).partition("|")
    code, out, err = typed(words, *([value] if bar else []))
    assert (code, out, typed.published) == (2, "", [])
    assert reason in err
    assert err.count("\n") == 1


def test_help_teaches_both(typed: Typed) -> None:
    for command in ("expect", "mute"):
        code, out, _ = typed(f"{command} --help")
        assert code == 0
        assert f"smidgen {command} list" in out
    assert "Expected-Cost: 0.1% shop.pricing.*" in typed("expect --help")[1]
