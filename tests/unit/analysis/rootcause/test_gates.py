from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline.analysis.rootcause.gates import GateHistory, affected_subroutines, switched_changes
from pipeline.cli import run
from pipeline.model import Change
from pipeline.model.errors import ConfigError
from pipeline.settings.gates import read_gates, write_gates

T = 1_700_000_000.0
DAY = 86_400.0


def change(name: str, at: float, *, subroutines: tuple[str, ...] = (), gates: tuple[str, ...] = ()) -> Change:
    return Change(name, "shop", at, name, subroutines=subroutines, gates=gates)


FLIP = change("flip", T, gates=("g",))


@pytest.mark.parametrize(
    ("history", "mapping", "found"),
    [
        pytest.param([], {}, set(), id="an unknown gate"),
        pytest.param([], {"g": ["a.f"], "h": ["b.f"]}, {"a.f"}, id="from the mapping"),
        pytest.param([change("c", T - DAY, subroutines=("c.f",), gates=("g",))], {}, {"c.f"}, id="from code"),
        pytest.param(
            [change("c", T - 31 * DAY, subroutines=("c.f",), gates=("g",))], {}, set(), id="too old"
        ),
        pytest.param([change("c", T + 1, subroutines=("c.f",), gates=("g",))], {}, set(), id="too late"),
        pytest.param([change("c", T - DAY, subroutines=("c.f",), gates=("x",))], {}, set(), id="other gate"),
        pytest.param(
            [change("c", T - DAY, subroutines=("c.f",), gates=("g",))],
            {"g": ["a.f"]},
            {"a.f", "c.f"},
            id="both",
        ),
    ],
)
def test_a_flip_affects_the_code_behind_its_gate(
    history: list[Change], mapping: dict[str, list[str]], found: set[str]
) -> None:
    (affected,) = affected_subroutines([FLIP], GateHistory([*history, FLIP]), mapping, lookback_s=30 * DAY)
    assert affected == found


def test_a_change_of_code_affects_what_it_modified() -> None:
    (affected,) = affected_subroutines(
        [change("c", T, subroutines=("a", "b"))], GateHistory([]), {}, lookback_s=DAY
    )
    assert affected == {"a", "b"}


def with_diff(name: str, at: float, content: str, *files: str, gates: tuple[str, ...] = ()) -> Change:
    return Change(name, "shop", at, name, content=content, files=files, gates=gates)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        pytest.param('+if flags.on("new_cart"):', True, id="a text"),
        pytest.param("+if features.new_cart:", True, id="an attribute"),
        pytest.param("+new_cart_2 = renew_cart()", False, id="parts of longer names"),
        pytest.param("+new-cart-total", False, id="another name with dashes"),
        pytest.param("", False, id="no diff"),
    ],
)
def test_a_diff_that_names_a_gate_is_behind_it(content: str, named: bool) -> None:
    code, flip = with_diff("code", T - DAY, content, "cart.py"), change("flip", T, gates=("new_cart",))
    found = switched_changes(flip, GateHistory([code, flip]), lookback_s=30 * DAY)
    assert [one.id for one in found] == (["code"] if named else [])


def test_code_that_reads_a_gate_switches_nothing_that_others_put_behind_it() -> None:
    earlier = change("c", T - DAY, subroutines=("c.f",), gates=("new_cart",))
    diff = '+if flags.on("new_cart"):'
    reader = Change(
        "r", "shop", T, "r", files=("a.py",), subroutines=("a.f",), gates=("new_cart",), content=diff
    )
    in_settings = with_diff("s", T, '+"new_cart": true', "flags/cart.json", gates=("new_cart",))
    history = GateHistory([earlier, reader, in_settings])
    gates = {"new_cart": ["m.f"]}
    affected = affected_subroutines([reader, in_settings], history, gates, lookback_s=30 * DAY)
    assert [set(names) for names in affected] == [{"a.f"}, {"a.f", "c.f", "m.f"}]
    assert switched_changes(reader, history, lookback_s=30 * DAY) == ()
    assert [one.id for one in switched_changes(in_settings, history, lookback_s=30 * DAY)] == ["r", "c"]


def test_a_short_name_is_not_looked_for_in_diffs() -> None:
    code, carrier = with_diff("code", T - DAY, "+on = 1", "a.py"), change("c", T, gates=("on",))
    tagged = with_diff("tagged", T - DAY, "+x", "a.py", gates=("on",))
    (found,) = switched_changes(carrier, GateHistory([code, tagged, carrier]), lookback_s=30 * DAY)
    assert found.id == "tagged"


def test_a_flip_switches_the_latest_changes_of_code_and_no_other_flip() -> None:
    code = [change(f"c{day}", T - day * DAY, subroutines=("a.f",), gates=("g",)) for day in (1, 2, 3, 4, 40)]
    others = [
        change("bare flip", T - 0.5 * DAY, gates=("g",)),
        with_diff("flip in a file", T - 0.6 * DAY, '-"g": false', "flags/a.json", gates=("g",)),
        change("later", T + 1, subroutines=("a.f",), gates=("g",)),
    ]
    found = switched_changes(FLIP, GateHistory([*code, *others, FLIP]), lookback_s=30 * DAY)
    assert [one.id for one in found] == ["c1", "c2", "c3"]
    assert switched_changes(change("c", T), GateHistory(code), lookback_s=30 * DAY) == ()


# The file and the command


def test_a_mapping_file_comes_back_as_written(tmp_path: Path) -> None:
    gates = {"new_feature": ("shop.a", "shop.B.<module>"), "on": ("x",), "1e3": ("ü",)}
    path = tmp_path / "gates.yaml"
    path.write_text(write_gates(gates), encoding="utf-8")
    assert read_gates(path) == gates


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("- a", "should map gates"),
        ("a: b", "a: should be a list of subroutines"),
        ("a: [1]", "a: should be a list of subroutines"),
        ("1: [b]", "'1': a gate's name should be a text"),
        ("a: [b]\na: [c]", "stands twice"),
        ("a: [", "gates.yaml:1"),
        ("\x00", "gates.yaml"),
    ],
)
def test_a_wrong_mapping_file_is_one_line(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "gates.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_gates(path)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_empty_mapping_file_maps_nothing(tmp_path: Path) -> None:
    (tmp_path / "gates.yaml").write_text("")
    assert read_gates(tmp_path / "gates.yaml") == {}
    with pytest.raises(ConfigError, match="No such file"):
        read_gates(tmp_path / "none.yaml")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source folder with one good file and everything that can be wrong with one."""
    root = tmp_path / "src"
    (root / "shop").mkdir(parents=True)
    (root / "shop" / "__init__.py").write_text("conf.get('top')")
    (root / "shop" / "cart.py").write_text("def total():\n    if conf.get('new_cart'): pass\n")
    (root / "shop" / "broken.py").write_text("def f(:\n")
    (root / "shop" / "binary.py").write_bytes(b"\x00\x01")
    (root / "shop" / "latin.py").write_bytes(b"# \xe9\xff")
    (root / "shop" / "huge.py").write_text("x = 1\n" * 400_000)
    (root / "shop" / "deep.py").write_text("x = " + "-" * 50_000 + "1")
    (root / "shop" / "notes.txt").write_text("conf.get('text')")
    (root / ".hidden").mkdir()
    (root / ".hidden" / "a.py").write_text("def f(): conf.get('hidden')")
    (tmp_path / "outside.py").write_text("def f(): conf.get('secret')")
    (root / "leaves.py").symlink_to(tmp_path / "outside.py")
    (root / "circle").symlink_to(root)
    os.mkfifo(root / "pipe.py")
    return root


def test_the_command_reads_what_it_can(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "gates.yaml"
    assert run(["gates", str(tree), "--reader", "conf.get", "-o", str(out)]) == 0
    assert read_gates(out) == {"new_cart": ("shop.cart.total",), "top": ("shop.<module>",)}
    output = capsys.readouterr()
    assert "2 gates (2 of 9 files read)" in output.out.replace("\n", " ")
    skipped = {line.split(": ")[1] for line in output.err.splitlines()}
    names = ("broken", "binary", "latin", "huge", "deep")
    assert skipped == {"leaves.py", "pipe.py", *(f"shop/{name}.py" for name in names)}
    assert "Traceback" not in output.err


@pytest.mark.parametrize(
    ("reads", "line"),
    [
        pytest.param(0, "", id="none"),
        pytest.param(1, "1 read whose gate is unknown: shop/cart.py:2\n", id="one"),
        pytest.param(
            3,
            "3 reads whose gate is unknown: shop/cart.py:2, shop/cart.py:3, shop/cart.py:4\n",
            id="several",
        ),
        pytest.param(
            9,
            "9 reads whose gate is unknown: "
            "shop/cart.py:2, shop/cart.py:3, shop/cart.py:4, shop/cart.py:5, shop/cart.py:6 and 4 more\n",
            id="many",
        ),
    ],
)
def test_the_command_lists_reads_to_be_mapped_by_hand(
    reads: int, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "cart.py").write_text("conf.get('g')\n" + "conf.get(pick())\n" * reads)
    out = tmp_path / "gates.yaml"
    assert run(["gates", str(tmp_path), "--reader", "conf.get", "-o", str(out)]) == 0
    assert capsys.readouterr().err == line
    assert read_gates(out) == {"g": ("shop.cart.<module>",)}


def test_the_command_shows_no_control_sequence_of_a_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "\x1b[31mred.py").write_text("conf.get(pick())\n")
    (tmp_path / "\x1b[31mbroken.py").write_text("def f(:\n")
    assert run(["gates", str(tmp_path), "--reader", "conf.get", "-o", str(tmp_path / "gates.yaml")]) == 0
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert "unknown: \\x1b[31mred.py:1" in err
    assert "skipped: \\x1b[31mbroken.py" in err


def test_the_command_refuses_what_it_cannot_write(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gates", str(tree), "--reader", "conf.get", "-o", str(tree / "no" / "gates.yaml")]) == 2
    assert run(["gates", str(tree / "none"), "--reader", "conf.get", "-o", str(tree / "x")]) == 2
    assert run(["gates", str(tree), "-o", str(tree / "x")]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("reader", ["", " ", "conf.", ".get", "conf.get()"])
def test_a_reader_that_is_no_name_is_refused(
    reader: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.py").write_text("def f(): conf.get('g')\n")
    assert run(["gates", str(tmp_path), "--reader", reader, "-o", str(tmp_path / "gates.yaml")]) == 2
    err = capsys.readouterr().err
    assert "should be a name such as conf.get" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "gates.yaml").exists()
