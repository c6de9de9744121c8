from __future__ import annotations

import os
from pathlib import Path
from textwrap import dedent

import pytest

from pipeline.cli import run
from pipeline.codec.gates import read_gates, write_gates
from pipeline.errors import ConfigError
from pipeline.model import Change
from pipeline.rootcause.gate_source import functions_in, map_gates
from pipeline.rootcause.gates import affected_subroutines

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
    (affected,) = affected_subroutines([FLIP], [*history, FLIP], mapping, lookback_s=30 * DAY)
    assert affected == found


def test_a_change_of_code_affects_what_it_modified() -> None:
    (affected,) = affected_subroutines([change("c", T, subroutines=("a", "b"))], [], {}, lookback_s=DAY)
    assert affected == {"a", "b"}


# Source


def gates_of(readers: tuple[str, ...] = ("conf.get",), **modules: str) -> dict[str, tuple[str, ...]]:
    functions = [one for name, text in modules.items() for one in functions_in(name, dedent(text))]
    return map_gates(functions, readers)


def test_figure_15() -> None:
    source = """
        def fun1():
            if conf.get("new_feature_A") == True:
                work()
    """
    assert gates_of(shop=source) == {"new_feature_A": ("shop.fun1",)}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param("def f(): self.conf.get('g')", {"g": ("m.f",)}, id="through an attribute"),
        pytest.param("def f(): other.get('g')", {}, id="another function"),
        pytest.param("def f(): conf.get(key='g')", {"g": ("m.f",)}, id="by keyword"),
        pytest.param("G = 'g'\ndef f(): conf.get(G)", {"g": ("m.f",)}, id="by a constant"),
        pytest.param("G = 'g'\ndef f(G): conf.get(G)", {}, id="a parameter hides a constant"),
        pytest.param("x = conf.get('g')", {"g": ("m.<module>",)}, id="at the top of the module"),
        pytest.param("class C:\n def f(self): conf.get('g')", {"g": ("m.C.f",)}, id="in a method"),
        pytest.param("def f():\n def h(): conf.get('g')", {"g": ("m.f.h",)}, id="in a nested function"),
        pytest.param("def f(): return [conf.get('g') for _ in x]", {"g": ("m.f",)}, id="in a comprehension"),
        pytest.param("async def f(): await conf.get('g')", {"g": ("m.f",)}, id="in a coroutine"),
        pytest.param("def f(): conf.get(name)\ndef g(): f()", {}, id="a name that is not known"),
        pytest.param("def f(): conf.get()", {}, id="no argument"),
        pytest.param("def f(): conf.get(1)", {}, id="a number"),
    ],
)
def test_direct_reads(source: str, found: dict[str, tuple[str, ...]]) -> None:
    assert gates_of(m=source) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param(
            "def on(): return conf.get('g')\ndef f(): on()", {"g": ("m.f", "m.on")}, id="of a fixed gate"
        ),
        pytest.param("def on(n): return conf.get(n)\ndef f(): on('g')", {"g": ("m.f",)}, id="of any gate"),
        pytest.param(
            "def on(n): return bool(conf.get(n)) and ok\ndef f(): on('g')",
            {"g": ("m.f",)},
            id="with more around",
        ),
        pytest.param(
            "def work():\n if conf.get('g'): pass\ndef f(): work()",
            {"g": ("m.work",)},
            id="no wrapper: not returned",
        ),
        pytest.param(
            "def on(): return conf.get('g')\ndef two(): return on()\ndef f(): two()",
            {"g": ("m.on", "m.two")},
            id="one layer only",
        ),
        pytest.param(
            "class C:\n def on(self): return conf.get('g')\n def f(self): self.on()\n"
            "class D:\n def on(self): pass\n def f(self): self.on()",
            {"g": ("m.C.f", "m.C.on")},
            id="a method of the same class",
        ),
        pytest.param(
            "def on():\n x = conf.get('g')\n return x\ndef f(): on()", {"g": ("m.f", "m.on")}, id="by a name"
        ),
        pytest.param(
            "def on(n):\n x: bool = conf.get(n)\n return bool(x) and ok\ndef f(): on('g')",
            {"g": ("m.f",)},
            id="of any gate, by a name with more around",
        ),
        pytest.param(
            "def on():\n if conf.get('g'): return True\n return False\ndef f(): on()",
            {"g": ("m.f", "m.on")},
            id="by a constant",
        ),
        pytest.param(
            "def on(n):\n if not (x := conf.get(n)): return 0\n else: return 1\ndef f(): on('g')",
            {"g": ("m.f",)},
            id="of any gate, by a constant",
        ),
        pytest.param(
            "def work():\n x = conf.get('g')\n return compute(x)\ndef f(): work()",
            {"g": ("m.work",)},
            id="no wrapper: what it returns was computed of it",
        ),
        pytest.param(
            "def work():\n if not conf.get('g'): return\n act()\ndef f(): work()",
            {"g": ("m.work",)},
            id="no wrapper: it only leaves",
        ),
        pytest.param(
            "def work():\n if conf.get('g'): return 1\n return act()\ndef f(): work()",
            {"g": ("m.work",)},
            id="no wrapper: it returns its work",
        ),
        pytest.param(
            "def on(): return conf.get('g')\ndef two():\n x = on()\n return x\ndef f(): two()",
            {"g": ("m.on", "m.two")},
            id="one layer only, by a name too",
        ),
        pytest.param(
            "def on(n): return conf.get(n)\ndef f(n): on(n)", {}, id="the gate comes from further up"
        ),
    ],
)
def test_one_layer_of_wrapper(source: str, found: dict[str, tuple[str, ...]]) -> None:
    assert gates_of(m=source) == found


def test_wrappers_of_other_modules_are_known_by_a_name_of_their_own() -> None:
    wrapper = "def checkout_on(): return conf.get('g')"
    assert gates_of(a=wrapper, b="def f(): a.checkout_on()") == {"g": ("a.checkout_on", "b.f")}
    twice = gates_of(a=wrapper, b="def f(): a.checkout_on()", c="def checkout_on(): pass")
    assert twice == {"g": ("a.checkout_on",)}, "which of the two is meant cannot be told"


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
    told = capsys.readouterr()
    assert "2 gates (2 of 9 files read)" in told.out.replace("\n", " ")
    skipped = {line.split(": ")[1] for line in told.err.splitlines()}
    names = ("broken", "binary", "latin", "huge", "deep")
    assert skipped == {"leaves.py", "pipe.py", *(f"shop/{name}.py" for name in names)}
    assert "Traceback" not in told.err


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
