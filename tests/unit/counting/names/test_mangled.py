"""Mangled names against what their compilers' own tools make of them, and against hostile ones."""

from __future__ import annotations

import json
import time
from pathlib import Path

import demangle
import pytest

from pipeline.counting.names import Naming

GOLDEN = json.loads(Path(__file__).with_name("mangled.json").read_text(encoding="utf-8"))
"""Names in the symbol tables of libstdc++, Arrow, rustc and others, and what LLVM prints for each."""


@pytest.mark.parametrize("mangled", GOLDEN)
def test_a_mangled_name_has_the_symbol_of_the_name_that_llvm_prints(mangled: str) -> None:
    naming = Naming()
    assert naming.symbol(mangled) == naming.symbol(GOLDEN[mangled]) != mangled


def repeated(seed: str, length: int) -> str:
    """Return a name whose every type holds the one before twice: it stands for one of 2 to the power of n."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    name, number = seed, 2
    while len(name) < length:
        index = number - 1
        of = (digits[index // 36] if index >= 36 else "") + digits[index % 36]
        name += f"S_IS{of}_S{of}_E"
        number += 1
    return name


@pytest.mark.parametrize(
    "name",
    [
        repeated("_Z1f1AI1BS0_E", 250),
        repeated("_Z1f1AI1BS0_E", 4000),
        "_Z1f" + "P" * 4000 + "i",
        "_ZN1aI" * 680,
        "_Z1f" + "PFvi" * 900,
        "_Z1fIX" + "pl" * 2000,
        "_Z" + "9" * 4000,
        "_RNvMC1aINtC1b1cTB5_B5_EE1f" + "B5_" * 900,
        "_R" + "Nv" * 1900 + "C1a1b",
        "?a" + "@b" * 1900 + "@@YAXXZ",
        "??$f@" * 800,
        "_ZN4sh\udc80p3addEv",
        "_Z1f\0",
    ],
    ids=lambda name: name[:8],
)
def test_hostile_names_are_bounded(name: str) -> None:
    began = time.process_time()
    symbol = Naming().symbol(name)
    assert time.process_time() - began < 0.5
    assert len(symbol) <= 16_384
    assert Naming().symbol(symbol) == symbol


def test_the_library_keeps_nothing() -> None:
    demangle.cache_clear()
    Naming().symbol("_ZN4shop4Cart3addEv")
    assert demangle.cache_stats()["size"] == 0
