"""Calls of Python that its source shows: names, imports, types, classes."""

from __future__ import annotations

import pytest

from agents.source.routes import read_application

STORE = """
LIMIT = 3
class Base:
    def load(self, id): return self.read(id)
    def read(self, id): ...
class Store(Base):
    size = 10
    def __init__(self): ...
    def read(self, id): return helper(id)
    def unlike_any_other(self): ...
    def limit(self): return self.size
def helper(id): return LIMIT
def make() -> Store: return Store()
store = Store()
"""


@pytest.mark.parametrize(
    ("code", "reached"),
    [
        pytest.param("from shop.store import helper\ndef f(): helper(1)", "shop.store.helper", id="import"),
        pytest.param(
            "from .store import helper as h\ndef f(): h(1)", "shop.store.helper", id="relative import"
        ),
        pytest.param(
            "import shop.store\ndef f(): shop.store.helper(1)", "shop.store.helper", id="whole name"
        ),
        pytest.param("from shop import store as s\ndef f(): s.helper(1)", "shop.store.helper", id="module"),
        pytest.param("from shop.store import *\ndef f(): helper(1)", "shop.store.helper", id="star"),
        pytest.param(
            "def f():\n    from .store import helper\n    helper(1)", "shop.store.helper", id="inside"
        ),
        pytest.param(
            "from .store import Store\ndef f(): Store()", "shop.store.Store.__init__", id="constructor"
        ),
        pytest.param(
            "from .store import Store\ndef f(): Store().load(1)", "shop.store.Store.read", id="override"
        ),
        pytest.param(
            "from .store import Store\ndef f(s: Store): s.load(1)", "shop.store.Base.load", id="parameter"
        ),
        pytest.param(
            "from .store import Store\ndef f(s: 'Store | None'): s.load(1)",
            "shop.store.Base.load",
            id="optional",
        ),
        pytest.param("from .store import make\ndef f(): make().load(1)", "shop.store.Base.load", id="result"),
        pytest.param(
            "from .store import make\ndef f():\n    with make() as s: s.load(1)",
            "shop.store.Base.load",
            id="with",
        ),
        pytest.param("from .store import store\ndef f(): store.load(1)", "shop.store.Base.load", id="global"),
        pytest.param(
            "from .store import Store\nclass A:\n    def __init__(self): self.s = Store()\n"
            "    def go(self): self.s.load(1)\ndef f(): A().go()",
            "shop.store.Base.load",
            id="field",
        ),
        pytest.param("from .store import helper\ndef f(): run(helper)", "shop.store.helper", id="handed on"),
        pytest.param("from .store import helper\n@helper\ndef f(): ...", "shop.store.helper", id="decorator"),
        pytest.param(
            "from .store import helper\ndef f(x=Depends(helper)): ...", "shop.store.helper", id="default"
        ),
        pytest.param(
            "from .store import helper\ndef f(): return [helper(x) for x in y]",
            "shop.store.helper",
            id="list",
        ),
        pytest.param(
            "def f(x): x.unlike_any_other()", "shop.store.Store.unlike_any_other", id="only of its name"
        ),
        pytest.param("from .store import helper\ndef f(): helper(1)", "shop.store.<module>", id="constant"),
        pytest.param("from .store import store\ndef f(): store.limit()", "shop.store.Store", id="attribute"),
        pytest.param("def f():\n    def g(): h()\n    g()\ndef h(): ...", "shop.app.h", id="nested function"),
    ],
)
def test_a_call_is_resolved(code: str, reached: str) -> None:
    files = {"shop/__init__.py": "", "shop/store.py": STORE, "shop/app.py": code}
    graph = read_application({path: text.encode() for path, text in files.items()}).graph
    assert reached in graph.reach("shop.app.f").depths


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("import json\ndef f(): json.helper(1)", id="of another package"),
        pytest.param("def f(helper): helper(1)", id="a parameter of that name"),
        pytest.param("def f(x): x.load(1)", id="a name that several types may have"),
    ],
)
def test_what_is_not_known_is_not_called(code: str) -> None:
    files = {"shop/__init__.py": "", "shop/store.py": STORE + "class Other:\n    def load(self): ...\n"}
    files["shop/app.py"] = code
    graph = read_application({path: text.encode() for path, text in files.items()}).graph
    assert graph.reach("shop.app.f").depths == {"shop.app.f": 0}
