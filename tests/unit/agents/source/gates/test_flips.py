"""``smidgen flips``: what flips in a file of flags, as it is typed."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.commands import flips as command
from agents.source.gates import flag_file
from agents.source.gates.flag_file import FlagFile, watch
from agents.source.gates.flag_set import differences, flag_set_of, read_flag_set
from agents.source.gates.flips import Flip, flip_change
from agents.source.gates.plain_json import PlainJson
from pipeline.cli import run
from pipeline.messages.inputs import decode_change
from pipeline.model import Change, Outgoing
from pipeline.model.errors import BrokerUnavailable, InvalidMessage

T = 1_700_000_000.0
ON = {"state": "ENABLED", "variants": {"on": True, "off": False}, "defaultVariant": "off"}


def nested(depth: int) -> bytes:
    rule = '{"!": [' * (depth // 2) + "1" + "]}" * (depth // 2)
    return f'{{"flags": {{"a": {{"state": "ENABLED", "targeting": {rule}}}}}}}'.encode()


def flags(**changed: dict[str, Any]) -> bytes:
    return json.dumps({"flags": {"new_cart": ON, "old": ON, **changed}}).encode()


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        pytest.param({"defaultVariant": "on"}, "off", "on", id="default variant"),
        pytest.param({"state": "DISABLED", "defaultVariant": "on"}, "", "", id="disabled is off"),
        pytest.param({"targeting": {"if": [True, "on"]}}, "off", "off with targeting", id="targeting"),
        pytest.param({"variants": {"off": 0}}, "off", "off, with other variants", id="variants"),
        pytest.param({"metadata": {"owner": "ada"}}, "", "", id="no flip: metadata"),
    ],
)
def test_a_difference_of_state_is_a_flip(change: dict[str, Any], before: str, after: str) -> None:
    found = list(differences(read_flag_set(flags()), read_flag_set(flags(new_cart={**ON, **change}))))
    if change.get("state"):
        assert found == [("new_cart", "off", "off, with other state and defaultVariant")]
    else:
        assert found == ([("new_cart", before, after)] if after else [])


def test_flags_that_come_and_go_flip() -> None:
    old, new = flag_set_of({"flags": {"a": ON}}), flag_set_of({"flags": {"b": ON}})
    assert list(differences(old, new)) == [("a", "off", "absent"), ("b", "absent", "off")]


def test_a_shared_rule_flips_the_flags_that_refer_to_it() -> None:
    def with_rule(value: int) -> dict[str, Any]:
        rule = {"$evaluators": {"staff": {"==": [value, {"var": "group"}]}}}
        return {"flags": {"a": {**ON, "targeting": {"if": [{"$ref": "staff"}, "on"]}}, "b": ON}, **rule}

    found = list(differences(flag_set_of(with_rule(1)), flag_set_of(with_rule(2))))
    assert [gate for gate, _, _ in found] == ["a"]


def test_yaml_is_read_as_json_is() -> None:
    text = (
        b"flags:\n  new_cart: {state: ENABLED, variants: {'on': true, 'off': false}, defaultVariant: off}\n"
    )
    assert read_flag_set(text)["new_cart"] == ON


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "neither JSON nor YAML"),
        (b"\xff\xfe\x00", "neither JSON nor YAML"),
        (b"[]", "flags: should be an object"),
        (b'{"flags": []}', "flags: should be an object"),
        (b'{"flags": {"a": 1}}', "flags.a: should be an object"),
        (b'{"flags": {"": {}}}', "names should be texts"),
        (nested(300), "flags.a: nested deeper than 50"),
        (nested(2000), "neither JSON nor YAML: line 1: nested deeper than 50"),
        (b"flags: {a: {targeting: &x [*x]}}", "an alias stands within what it names"),
        (b"flags: {a: {variants: {1: 2, true: 3}}}", "two keys are the same value"),
        (b"flags: {a: {variants: {1: 2, '1': 3}}}", "key '1' stands twice"),
        (b"flags: {a: {variants: {0x1: 2, '1': 3}}}", "flags.a: two keys are the same text"),
        (b"flags: {a: {variants: {~: 2, 'null': 3}}}", "flags.a: two keys are the same text"),
        (b"flags: {a: {defaultVariant: 123456789012345678901234567890}}", "line 1: a number beyond 64 bits"),
        (b"flags: {a: {variants: {b: .nan}}}", "flags.a: a number should be finite"),
        (b"flags: {a: {variants: !!set {b}}}", "flags.a: should be plain JSON, not set"),
        (b"flags: {a: {variants: !!binary aGk=}}", "flags.a: should be plain JSON, not bytes"),
        (b"$evaluators: {r: .inf}\nflags: {}", "evaluators: a number should be finite"),
        (rb'flags: {"a\uD800": {state: ENABLED}}', "half a character"),
        (rb'{"flags": {"a\ud800": {"state": "ENABLED"}}}', "half a character"),
        (
            b"flags: {a: {variants: {b: &b " + b"b" * 2**20 + b", c: [" + b"*b," * 20 + b"]}}}",
            "too many values",
        ),
    ],
)
def test_what_is_no_set_of_flags_says_so(content: bytes, reason: str) -> None:
    with pytest.raises(InvalidMessage, match=reason):
        read_flag_set(content)


@pytest.mark.parametrize(
    "yaml",
    [
        pytest.param("{on: true, off: false}", id="booleans as keys"),
        pytest.param("{1: 2, 2.5: 3, ~: 4}", id="numbers and null as keys"),
        pytest.param("{a: 2026-01-01, 2026-01-02: 2026-01-01T00:00:00Z}", id="dates"),
        pytest.param("{a: 18446744073709551615.0, b: -9223372036854775808}", id="large numbers"),
        pytest.param("{a: &a [1, {b: c}], b: *a}", id="an alias"),
    ],
)
def test_what_yaml_alone_has_is_kept_as_json(tmp_path: Path, yaml: str) -> None:
    def content(state: str) -> bytes:
        return f"flags: {{a: {{state: {state}, variants: {yaml}}}}}".encode()

    on, off = read_flag_set(content("ENABLED")), read_flag_set(content("DISABLED"))
    assert [gate for gate, _, _ in differences(on, off)] == ["a"]
    file = FlagFile(tmp_path / "flags", tmp_path / "state", service="shop", pattern="*", clock=lambda: T)
    file.remember(on)
    assert file.remembered() == on == json.loads(json.dumps(on))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.booleans(), inner),
    )
)
def test_whatever_was_parsed_becomes_json_or_is_refused(value: object) -> None:
    try:
        plain = PlainJson(10_000).copy(value, "value")
    except InvalidMessage:
        return
    assert PlainJson(10_000).copy(json.loads(orjson.dumps(plain)), "value") == plain


@pytest.mark.parametrize(
    ("flip", "title"),
    [
        (Flip("g", T, "off", "on"), "Turn on g"),
        (Flip("g", T, "", "off", environment="production"), "Turn off g in production"),
        (Flip("g", T, "red", "blue"), "Change g from red to blue"),
        (Flip("g", T, "", "updateRules"), "Change g: updateRules"),
        (Flip("g", T), "Change g"),
    ],
)
def test_a_flip_is_a_change_of_its_gate(flip: Flip, title: str) -> None:
    change = flip_change(flip, "shop")
    assert (change.title, change.gates, change.service, change.time) == (title, ("g",), "shop", T)
    assert flip_change(flip, "shop") == change


def test_a_flip_there_and_back_is_two_changes() -> None:
    ids = [flip_change(Flip("g", T + i, "off", "on"), "shop").id for i in range(2)]
    assert len(set(ids)) == 2
    same = [flip_change(Flip("g", T + i, "off", "on", id="audit-1"), "shop").id for i in range(2)]
    assert len(set(same)) == 1, "a flag service's own event keeps its id"


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[Change]:
    found: list[Change] = []

    def publish(messages: Sequence[Outgoing], *_: Any) -> None:
        found.extend(decode_change(message.value) for message in messages)

    monkeypatch.setattr(command, "publish_once", publish)
    return found


def write(path: Path, content: bytes, at: float = T) -> None:
    path.write_bytes(content)
    os.utime(path, (at, at))


def test_two_files_are_compared(
    tmp_path: Path, published: list[Change], capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "old.json", flags())
    write(tmp_path / "new.json", flags(new_cart={**ON, "defaultVariant": "on"}))
    given = ["flips", str(tmp_path / "new.json"), "--service", "shop", "--before", str(tmp_path / "old.json")]
    assert run([*given, "--dry-run"]) == 0
    assert (capsys.readouterr().out, published) == ("Turn on new_cart\n", [])
    assert run([*given, "--json"]) == 0
    (change,) = published
    assert json.loads(capsys.readouterr().out)["id"] == change.id
    assert (change.time, change.gates) == (T, ("new_cart",))
    assert run([*given, "--gates", "old*"]) == 0
    assert (len(published), capsys.readouterr().err) == (1, "nothing flipped\n")


def test_a_state_file_remembers(
    tmp_path: Path, published: list[Change], capsys: pytest.CaptureFixture[str]
) -> None:
    path, state = tmp_path / "flags.json", tmp_path / "state.json"
    write(path, flags())
    given = ["flips", str(path), "--service", "shop", "--state", str(state)]
    assert run(given) == 0
    assert (published, capsys.readouterr().err) == ([], "2 gates; what flips from now on is published\n")
    write(path, flags(new_cart={**ON, "defaultVariant": "on"}), T + 5)
    assert run([*given, "--dry-run"]) == 0
    assert published == []
    assert [run(given), run(given)] == [0, 0]
    assert [change.title for change in published] == ["Turn on new_cart"]
    assert run(["flips", str(path), "--service", "till", "--state", str(state)]) == 2
    assert "belongs to service 'shop'" in capsys.readouterr().err


def test_watching_publishes_each_flip_once_and_outlives_outages(tmp_path: Path) -> None:
    path, stop = tmp_path / "flags.json", threading.Event()
    seen: list[Flip] = []
    contents = [
        flags(),
        b"{half a fi",
        flags(new_cart={**ON, "defaultVariant": "on"}),
        flags(new_cart={**ON, "defaultVariant": "on"}),
        flags(),
    ]
    write(path, contents.pop(0))
    broken = [True]

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            if not contents:
                return True
            write(path, contents.pop(0), T + 10 - len(contents))
            return False

    def publish(found: Sequence[Flip]) -> None:
        if broken:
            broken.pop()
            raise BrokerUnavailable("away")
        seen.extend(found)

    file = FlagFile(path, tmp_path / "state.json", service="shop", pattern="*", clock=lambda: T + 100)
    watch(file, publish, interval_s=0.01, stop=Stop())
    assert not stop.is_set()
    assert [(flip.gate, flip.before, flip.after) for flip in seen] == [
        ("new_cart", "off", "on"),
        ("new_cart", "on", "off"),
    ]
    assert file.remembered() == read_flag_set(flags())


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["flags.json", "--service", "shop"], "give --before or --state, or --follow to watch FILE"),
        (["flags.json", "--service", "shop", "--before", "a", "--state", "b"], "--before compares once"),
        (["none.json", "--service", "shop", "--before", "flags.json"], "none.json: No such file"),
        (["flags.json", "--service", "shop", "--before", "bad.json"], "bad.json: neither JSON nor YAML"),
        (["flags.json", "--service", "shop", "--state", "bad.json"], "bad.json: not a state file"),
        (["flags.json", "--service", "shop", "--state", "deep.json"], "deep.json: not a state file"),
        (
            ["/dev/zero", "--service", "shop", "--before", "flags.json"],
            "/dev/zero: larger than 16777216 bytes",
        ),
        (
            ["flags.json", "--service", "shop", "--before", "/dev/zero"],
            "/dev/zero: larger than 16777216 bytes",
        ),
        (["flags.json", "--service", "shop", "--state", "/dev/zero"], "/dev/zero: larger than 4194304 bytes"),
        (["deep.json", "--service", "shop", "--state", "new.json"], "flags.a: nested deeper than 50"),
        (["deep.json", "--service", "shop", "--before", "deep.json"], "flags.a: nested deeper than 50"),
        (["flags.json", "--service", "shop", "--before", "half.yaml", "--dry-run"], "half a character"),
        (["half.yaml", "--service", "shop", "--state", "new.json"], "half a character"),
        (["flags.json", "--service", "shop", "--follow", "soon"], "--follow"),
        (["flags.json", "--before", "flags.json"], "Missing option '--service'"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(
    given: list[str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    published: list[Change],
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "flags.json", flags())
    write(tmp_path / "bad.json", b"{")
    write(tmp_path / "deep.json", nested(300))
    write(tmp_path / "half.yaml", rb'flags: {"a\uD800\n": {state: ENABLED}}')
    monkeypatch.setattr(flag_file, "MAX_STATE_BYTES", 4 * 2**20)
    assert run(["flips", *given]) == 2
    err = capsys.readouterr().err
    assert reason in err
    assert (err.count("\n"), published) == (1, [])
