"""CPU profiles of gperftools as stacks."""

from __future__ import annotations

import struct

import pytest

from agents.profiles.formats import AUTO, ProfileSource, find_format, parse, read_profile
from agents.profiles.formats.pprof_legacy import LegacyPprofFormat
from tests.support.paths import REAL_DATA
from tests.support.profile_files import legacy_pprof

LEGACY = LegacyPprofFormat()
SAMPLES = REAL_DATA / "profiles"


def words(*samples: tuple[int, ...]) -> bytes:
    flat = [word for count, *stack in samples for word in (count, len(stack), *stack)]
    return struct.pack(f"<{len(flat) + 8}Q", 0, 3, 0, 10_000, 0, *flat, 0, 1, 0)


def stacks_of(data: bytes) -> list[tuple[tuple[str, ...], float]]:
    return [tuple(record) for record in read_profile(LEGACY, ProfileSource.of(data)).records]  # type: ignore[misc]


@pytest.mark.parametrize("word", ["<Q", ">Q", "<I", ">I"])
def test_words_of_every_machine(word: str) -> None:
    data = legacy_pprof(word)
    assert find_format(AUTO, data).name == "pprof-legacy"
    assert stacks_of(data) == [
        (("0x2020 (/bin/main)", "0x1010 (/lib/libwork.so)"), 3),
        (("0x2010 (/bin/main)",), 1),
    ]


def test_names_of_java() -> None:
    text = b"\n 0x1010 shop.Cart.total (Cart.java:12)\n 0x2021 shop.App.main (App.java:0)\n 0x2010 GC\n"
    assert stacks_of(legacy_pprof(java=True, text=text)) == [
        (("shop.App.main (App.java)", "shop.Cart.total (Cart.java:12)"), 3),
        (("GC",), 1),
    ]


def test_names_in_front() -> None:
    data = b"--- symbol\nbinary=/bin/main\n0x1010 work\n0x2020 main\n---\n--- profile\n" + legacy_pprof()
    assert find_format(AUTO, data).name == "pprof-legacy"
    assert parse(LEGACY, data).stacks == {("main", "work"): 3, ("[main]",): 1}


def test_frames_of_the_signals_handler_are_left_out() -> None:
    data = words(*[(1, 0x10 + index, 0x99, 0x98, 0x40 + index) for index in range(40)])
    assert all(len(stack) == 2 for stack, _ in stacks_of(data))


def test_a_leaf_that_stands_twice_is_one_frame() -> None:
    assert stacks_of(words((2, 0x10, 0x10, 0x30), (1, 0x11, 0x21), (1, 0x12, 0x22)))[0] == (
        ("0x2f", "0x10"),
        2,
    )


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(legacy_pprof()[:70], "sample 1: cut", id="cut"),
        pytest.param(words((1, 5), (2**63, 7)), "sample 2: counts", id="absurdly many samples"),
        pytest.param(words()[:40] + struct.pack("<2Q", 1, 2**62), "sample 1: cut", id="a depth that lies"),
        pytest.param(b"--- symbol\n", "no header", id="names alone"),
    ],
)
def test_damage_is_invalid(data: bytes, why: str) -> None:
    parsed = parse(LEGACY, data)
    assert parsed.invalid == 1
    assert why in parsed.first_invalid


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the shared profiles are not beside this checkout")
@pytest.mark.parametrize("name", ["cppbench.cpu", "gobench.cpu"])
def test_real_files_agree_with_pprof(name: str) -> None:
    """What pprof itself prints of them stands beside them: counts, and the number of each address."""
    printed = (SAMPLES / f"{name}.string").read_text()
    samples, locations = printed.split("samples/count cpu/nanoseconds\n")[1].split("Locations\n")
    addresses = {
        line.split(":")[0].strip(): line.split()[1] for line in locations.split("Mappings")[0].splitlines()
    }
    expected = []
    for line in samples.splitlines():
        values, _, stack = line.partition(":")
        expected.append((tuple(addresses[number] for number in stack.split()[::-1]), int(values.split()[0])))
    read = [
        (tuple(frame.split()[0] for frame in stack), weight)
        for stack, weight in stacks_of((SAMPLES / name).read_bytes())
    ]
    assert read == expected
