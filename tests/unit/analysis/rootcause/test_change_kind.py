from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeline.analysis.rootcause.change_kind import modifies_no_code, says_something
from tests.support.builders import build_change


@pytest.mark.parametrize(
    ("files", "none"),
    [
        (["docs/x.md", "README.rst", "LICENSE", "CHANGELOG.txt", "assets/logo.PNG"], True),
        (["docs/conf.py", "docs/words.txt"], True),
        (["tests/test_cart.py", "shop/cart_test.go", "web/src/cart.spec.ts", "src/test/java/A.java"], True),
        (["conftest.py", "shop/test_cart.py"], True),
        (["docs/x.md", "shop/cart.py"], False),
        (["shop/docs/render.py"], False),
        (["requirements.txt"], False),
        (["CMakeLists.txt"], False),
        (["config/gates.yaml"], False),
        (["bin/run"], False),
        (["docs"], False),
        (["tests"], False),
        (["contest.py", "shop/attest.go"], False),
        ([], False),
    ],
)
def test_documentation_and_tests_modify_no_code(files: list[str], none: bool) -> None:
    assert modifies_no_code(replace(build_change("one"), files=tuple(files))) is none


def test_what_flips_a_gate_may_do_anything() -> None:
    assert not modifies_no_code(replace(build_change("one"), files=("docs/x.md",), gates=("new_cart",)))


def test_a_title_is_enough_to_be_reported() -> None:
    blank: dict[str, Any] = {"title": "", "summary": "", "content": "\n", "files": ()}
    assert not says_something(replace(build_change("v1.5"), **blank))
    assert says_something(replace(build_change("v1.5"), **{**blank, "title": "Release"}))
    assert says_something(replace(build_change("v1.5"), **{**blank, "gates": ("new_cart",)}))
