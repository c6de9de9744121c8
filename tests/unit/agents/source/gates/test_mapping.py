"""Which functions read which gate, by Python source: direct reads, one layer of wrapper, and neither."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import dedent

import pytest

from agents.source.gates.mapping import GateMap, map_gates
from agents.source.gates.source import read_module


def mapped(modules: Mapping[str, str], readers: Sequence[str] = ("conf.get",)) -> GateMap:
    return map_gates([read_module(path, dedent(text)) for path, text in modules.items()], readers)


def gates_of(**modules: str) -> Mapping[str, tuple[str, ...]]:
    return mapped({f"{name}.py": text for name, text in modules.items()}).subroutines


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
        pytest.param(
            "G: Final = 'g'\ndef f(): conf.get(G)", {"g": ("m.f",)}, id="by a constant with an annotation"
        ),
        pytest.param("G: Final[str]\ndef f(): conf.get(G)", {}, id="an annotation alone"),
        pytest.param("G = 'g'\nG = pick()\ndef f(): conf.get(G)", {}, id="a constant that is assigned again"),
        pytest.param("G = 'g'\ndef f():\n G = pick()\n conf.get(G)", {}, id="a local name hides a constant"),
        pytest.param("def f():\n G = 'g'\n conf.get(G)", {"g": ("m.f",)}, id="by a local constant"),
        pytest.param("G = 'g'\ndef f(): pick().G and conf.get(pick().G)", {}, id="an attribute of a result"),
        pytest.param("x = conf.get('g')", {"g": ("m.<module>",)}, id="at the top of the module"),
        pytest.param("class C:\n def f(self): conf.get('g')", {"g": ("m.C.f",)}, id="in a method"),
        pytest.param("def f():\n def h(): conf.get('g')", {"g": ("m.f.h",)}, id="in a nested function"),
        pytest.param("def f(): return [conf.get('g') for _ in x]", {"g": ("m.f",)}, id="in a comprehension"),
        pytest.param("async def f(): await conf.get('g')", {"g": ("m.f",)}, id="in a coroutine"),
        pytest.param("def f(): conf.get(name)\ndef g(): f()", {}, id="a name that is not known"),
        pytest.param("def f(): conf.get()", {}, id="no argument"),
        pytest.param("def f(): conf.get(1)", {}, id="a number"),
        pytest.param("def f(): conf.get('')", {}, id="an empty text"),
    ],
)
def test_direct_reads(source: str, found: dict[str, tuple[str, ...]]) -> None:
    assert gates_of(m=source) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param("class C:\n K = 'g'\n def f(self): conf.get(self.K)", {"g": ("m.C.f",)}, id="of self"),
        pytest.param(
            "class C:\n K: Final = 'g'\n @classmethod\n def f(cls): conf.get(cls.K)",
            {"g": ("m.C.f",)},
            id="of the class",
        ),
        pytest.param("class C:\n K = 'g'\ndef f(): conf.get(C.K)", {"g": ("m.f",)}, id="by the class's name"),
        pytest.param(
            "class C(Enum):\n K = 'g'\ndef f(): conf.get(C.K.value)", {"g": ("m.f",)}, id="of an enumeration"
        ),
        pytest.param(
            "class C:\n class D:\n  K = 'g'\n  def f(self): conf.get(self.K)",
            {"g": ("m.C.D.f",)},
            id="of a nested class",
        ),
        pytest.param(
            "class C:\n K = 'g'\nclass D:\n def f(self): conf.get(self.K)", {}, id="not of another class"
        ),
        pytest.param(
            "class C:\n K = 'g'\n def __init__(self, k): self.K = k\n def f(self): conf.get(self.K)",
            {},
            id="not if instances have their own",
        ),
        pytest.param(
            "class C:\n gate: str = 'g'\n def f(self): conf.get(self.gate)", {}, id="not a field's default"
        ),
        pytest.param("K = 'g'\nclass C:\n def f(self): conf.get(self.K)", {}, id="not of the module"),
    ],
)
def test_constants_of_classes(source: str, found: dict[str, tuple[str, ...]]) -> None:
    assert gates_of(m=source) == found


@pytest.mark.parametrize(
    ("call", "found"),
    [
        pytest.param("conf.get(default=False, name='g')", True, id="the other is no text"),
        pytest.param("conf.get(default='off', name='g')", True, id="the other is a default"),
        pytest.param("conf.get(context=user, flag_key='g')", True, id="called like a gate's"),
        pytest.param("conf.get(setting='g', default='off')", True, id="all but a default"),
        pytest.param("conf.get('g', name='other')", True, id="by place first"),
        pytest.param("conf.get(default='g')", False, id="a default alone"),
        pytest.param("conf.get(setting='g', where='h')", False, id="either could be it"),
        pytest.param("conf.get(flag_name='g', user_name='h')", False, id="two called like a gate's"),
        pytest.param("conf.get(user, name='g')", False, id="the first is something else"),
    ],
)
def test_gates_given_by_keyword(call: str, found: bool) -> None:
    assert gates_of(m=f"def f(user): {call}") == ({"g": ("m.f",)} if found else {})


FLAGS = """
    GATE = "g"
    class Flags:
        CART: Final = "cart"
"""


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param("from shop.flags import GATE\ndef f(): conf.get(GATE)", "g", id="by name"),
        pytest.param("from shop.flags import GATE as G\ndef f(): conf.get(G)", "g", id="by another name"),
        pytest.param("from .flags import GATE\ndef f(): conf.get(GATE)", "g", id="from the same package"),
        pytest.param("from . import flags\ndef f(): conf.get(flags.GATE)", "g", id="of a module"),
        pytest.param("import shop.flags\ndef f(): conf.get(shop.flags.GATE)", "g", id="of a whole name"),
        pytest.param("import shop.flags as x\ndef f(): conf.get(x.GATE)", "g", id="of a module's other name"),
        pytest.param("from shop import GATE\ndef f(): conf.get(GATE)", "g", id="passed on by the package"),
        pytest.param(
            "def f():\n    from shop.flags import GATE\n    conf.get(GATE)", "g", id="in a function"
        ),
        pytest.param("from shop.flags import Flags\ndef f(): conf.get(Flags.CART)", "cart", id="of a class"),
        pytest.param("from other.flags import GATE\ndef f(): conf.get(GATE)", "", id="from outside the tree"),
        pytest.param("def f(): conf.get(GATE)", "", id="not imported"),
        pytest.param(
            "from shop.flags import GATE\ndef f(GATE): conf.get(GATE)", "", id="a parameter hides it"
        ),
    ],
)
def test_constants_of_other_modules(source: str, found: str) -> None:
    tree = {"shop/__init__.py": "from .flags import GATE", "shop/flags.py": FLAGS, "shop/cart.py": source}
    found_gates = mapped(tree)
    assert found_gates.subroutines == ({found: ("shop.cart.f",)} if found else {})
    assert bool(found_gates.unresolved) is not bool(found)


@pytest.mark.parametrize("reader", ["flags.is_on", "is_on"])
@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param("from flags import is_on as on\ndef f(): on('g')", True, id="of a function"),
        pytest.param("import flags as x\ndef f(): x.is_on('g')", True, id="of its module"),
        pytest.param("from lib import flags as x\ndef f(): x.is_on('g')", True, id="in a package"),
        pytest.param("from flags import is_off as on\ndef f(): on('g')", False, id="of another function"),
        pytest.param("from flags import is_on as on\ndef f(): off('g')", False, id="that is not called"),
        pytest.param("from flags import is_on as on\ndef f(on): on('g')", False, id="that a parameter hides"),
    ],
)
def test_readers_by_the_name_of_an_import(source: str, reader: str, found: bool) -> None:
    assert mapped({"m.py": source}, [reader]).subroutines == ({"g": ("m.f",)} if found else {})


@pytest.mark.parametrize(
    "returned",
    [
        pytest.param("conf.get('g') == 'on'", id="compared"),
        pytest.param("not conf.get('g')", id="negated"),
        pytest.param("ready and (conf.get('g') or forced)", id="and, or"),
        pytest.param("bool(int(conf.get('g')))", id="converted"),
        pytest.param("conf.get('g').strip().lower() in ('on', 'yes')", id="spelt the same"),
        pytest.param("True if conf.get('g') else False", id="chosen"),
        pytest.param("conf.get('g') if ready else False", id="or else a constant"),
        pytest.param("conf.get('g').enabled", id="a part of it"),
        pytest.param("await conf.get('g')", id="awaited"),
    ],
)
def test_a_wrapper_returns_what_it_read(returned: str) -> None:
    source = "async def on():\n {}\ndef f(): on()"
    assert gates_of(m=source.format(f"return {returned}")) == {"g": ("m.f", "m.on")}
    assert gates_of(m=source.format(f"x = {returned}\n return x")) == {"g": ("m.f", "m.on")}


@pytest.mark.parametrize(
    "returned",
    [
        pytest.param("compute(conf.get('g'))", id="computed"),
        pytest.param("compute(discount=conf.get('g'))", id="computed, by keyword"),
        pytest.param("compute(conf.get('g')) > 1 and ok", id="computed, with more around"),
        pytest.param("bool(compute(conf.get('g')))", id="computed, then converted"),
        pytest.param("price * conf.get('g')", id="calculated"),
        pytest.param("work() if conf.get('g') else other()", id="its work chosen"),
        pytest.param("[conf.get('g') for _ in x]", id="several"),
        pytest.param("{'g': conf.get('g')}", id="in something larger"),
        pytest.param("lambda: conf.get('g')", id="later"),
    ],
)
def test_no_wrapper_returns_what_it_computed(returned: str) -> None:
    assert gates_of(m=f"def total(): return {returned}\ndef f(): total()") == {"g": ("m.total",)}
    assert gates_of(m=f"def total():\n x = {returned}\n return x\ndef f(): total()") == {"g": ("m.total",)}


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
            "def work():\n if compute(conf.get('g')): return True\n return False\ndef f(): work()",
            {"g": ("m.work",)},
            id="no wrapper: it chooses by what was computed of it",
        ),
        pytest.param(
            "def on():\n x = conf.get('g')\n if x: return True\n return False\ndef f(): on()",
            {"g": ("m.f", "m.on")},
            id="by a constant, by a name",
        ),
        pytest.param(
            "def on(user, gate): return conf.get(gate)\ndef f(): on('ada', 'g')",
            {"g": ("m.f",)},
            id="of its second argument",
        ),
        pytest.param(
            "class C:\n def on(self, gate, default=0): return conf.get(gate)\n"
            " def f(self): self.on(default='x', gate='g')",
            {"g": ("m.C.f",)},
            id="by keyword",
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
    assert twice == {"g": ("a.checkout_on",)}, "which of the two is meant is unknown"
    found_gates = gates_of(
        a=wrapper, b="from a import checkout_on as on\ndef f(): on()", c="def checkout_on(): pass"
    )
    assert found_gates == {"g": ("a.checkout_on", "b.f")}, "the import decides"


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        pytest.param("def f(): conf.get('g')", [], id="a statement"),
        pytest.param("def f(n):\n if conf.get(n): pass", [2], id="given to a function that is no wrapper"),
        pytest.param("def f():\n conf.get(pick())\n conf.get('a' + b)", [2, 3], id="computed"),
        pytest.param("def f(): conf.get(*a), conf.get(**b)", [1, 1], id="unpacked"),
        pytest.param("def f(): conf.get(setting='g', where='h')", [1], id="ambiguous"),
        pytest.param("def f(): conf.get(), conf.get(1), conf.get(None)", [], id="no gate at all"),
        pytest.param("def on(n): return conf.get(n)", [], id="in a wrapper"),
        pytest.param("def on(n): return conf.get(n)\ndef f(): on(x)", [2], id="through a wrapper"),
        pytest.param("def on(n=G): return conf.get(n)\ndef f(): on()", [2], id="a wrapper's default"),
        pytest.param(
            "class C:\n def on(self): return conf.get(self)\n def f(self): self.on()",
            [3],
            id="a wrapper's own object",
        ),
        pytest.param(
            "class C:\n def of(self, n): return self.conf.get(n)\ndef f(): rates.of(x)",
            [],
            id="perhaps through a wrapper, perhaps not",
        ),
    ],
)
def test_reads_whose_gate_is_unknown(source: str, lines: list[int]) -> None:
    assert mapped({"shop/cart.py": source}).unresolved == tuple(("shop/cart.py", line) for line in lines)
