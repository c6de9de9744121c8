"""Names that users import: `smidgen` and its former names."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import smidgen

FORMER = {
    "agents.inprocess": "smidgen.inprocess",
    "agents.replay": "smidgen.replay",
    "pipeline.client": "smidgen.client",
}


@pytest.mark.parametrize("former", FORMER)
def test_former_names_work_with_a_warning(former: str) -> None:
    public, module = import_module(FORMER[former]), import_module(former)
    for name in public.__all__:
        with pytest.warns(DeprecationWarning, match=f"import {FORMER[former]}"):
            assert getattr(module, name) is getattr(public, name)
    assert smidgen.__version__
    for named in (module, smidgen):
        with pytest.raises(AttributeError, match="nothing_of_that_name"):
            named.nothing_of_that_name  # noqa: B018


def test_modules_load_when_they_are_used() -> None:
    program = (
        "import sys, smidgen\n"
        "before = [name for name in sys.modules if name.startswith(('smidgen.', 'agents'))]\n"
        "smidgen.inprocess.start\n"
        "heavy = {'numpy', 'orjson', 'pydantic', 'aiokafka', 'xxhash', 'click'} & set(sys.modules)\n"
        "print(before, sorted(heavy))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[] []\n"
