"""pprof's format before protocol buffers: CPU profiles of gperftools, and of Java agents that write it.

Words of the machine's size and byte order: a header (0, 3, version, period in microseconds, 0), samples
(count, number of addresses, addresses from the leaf on), a sample of address 0 as the end, and text: what
is mapped where (``/proc/self/maps``), or for Java the name of each address. ``pprof --raw`` writes names of
addresses in front of it. The rules are those of github.com/google/pprof, profile/legacy_profile.go.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from agents.profiles.formats.base import MAX_WEIGHT, Invalid, Measure, Reading, Record, Sample, choose_value
from agents.profiles.formats.source import Damaged, ProfileSource

_WORDS = ("<Q", ">Q", "<I", ">I")
_SYMBOLS = b"--- symbol"
_PROFILE = re.compile(rb"^--- profile\n", re.MULTILINE)
_SYMBOL = re.compile(r"^\s*0x([0-9a-fA-F]+)\s+(\S.*?)\s*$", re.MULTILINE)
_MAPPING = re.compile(
    r"^\s*([0-9a-f]{1,16})-([0-9a-f]{1,16}):?\s+(?:[-rwxps]{4}\s+[0-9a-f]+\s+[0-9a-f]+:[0-9a-f]+\s+\d+)?\s*(\S.*)?$",
    re.MULTILINE,
)
_LINE_0 = re.compile(r"(.*\(.*):-?0*\)$")
_HANDLER_FRAMES = 2
_SIMILAR = 32


class _Stacks(NamedTuple):
    """Samples by address, leaf first."""

    counts: list[int]
    addresses: list[tuple[int, ...]]
    cut: bool


class LegacyPprofFormat:
    """CPU profiles as words and text; code without names is named by address and binary."""

    name = "pprof-legacy"
    content = "samples of a CPU profile of gperftools"

    def recognises(self, head: bytes) -> bool:
        """Take what begins with the header's words, or with the symbols of such a profile."""
        return head.startswith(_SYMBOLS) or _word_of(head) is not None

    def read(self, source: ProfileSource, value: str) -> Reading:
        """Read the counts of the samples."""
        choose_value(("samples",), value, "")
        data = source.read_all()
        names: dict[int, str] = {}
        if data.startswith(_SYMBOLS):
            match = _PROFILE.search(data)
            names = _symbols(data[: match.start()] if match else data)
            data = data[match.end() :] if match else b""
        word = _word_of(data)
        if word is None:
            raise Damaged("has no header of a CPU profile")
        size = struct.calcsize(word)
        java = struct.unpack_from(word, data, 2 * size)[0] == 1
        stacks, end = _read_stacks(data, word)
        text = data[end:]
        if java:
            names |= _symbols(text)
        else:
            stacks = _without_handler(_with_calls(stacks))
        return Reading(Measure(), _records(stacks, names, _Mappings(text)))


class _Mappings:
    """Map from addresses to binaries."""

    def __init__(self, text: bytes) -> None:
        mappings = sorted(
            (int(first, 16), int(last, 16), path)
            for first, last, path in _MAPPING.findall(text.decode("utf-8", errors="replace"))
        )
        self._first = [first for first, _, _ in mappings]
        self._found = mappings

    def frame(self, address: int) -> str:
        index = bisect_right(self._first, address) - 1
        inside = index >= 0 and address < self._found[index][1]
        path = self._found[index][2] if inside else ""
        return f"{address:#x} ({path})" if path else f"{address:#x}"


def _records(stacks: _Stacks, names: Mapping[int, str], mappings: _Mappings) -> Iterator[Record]:
    frames: dict[int, str] = {}
    for number, (count, addresses) in enumerate(zip(stacks.counts, stacks.addresses, strict=True), start=1):
        if count > MAX_WEIGHT:
            yield Invalid(f"sample {number}: counts {count}")
            continue
        for address in addresses:
            if address not in frames:
                # An address was lowered by 1 where it is one of a call.
                name = names.get(address) or names.get(address + 1)
                frames[address] = name or mappings.frame(address)
        yield Sample(tuple(frames[address] for address in reversed(addresses)), count)
    if stacks.cut:
        yield Invalid(f"sample {len(stacks.counts) + 1}: cut, the end of the samples is missing")


def _word_of(data: bytes) -> str | None:
    """Return how words are packed, by the header; None if there is none."""
    for word in _WORDS:
        size = struct.calcsize(word)
        if len(data) >= 5 * size:
            zero, words, version, period, end = struct.unpack_from(word[0] + 5 * word[1], data)
            if (zero, words, end) == (0, 3, 0) and version in (0, 1) and 0 < period < 2**32:
                return word
    return None


def _read_stacks(data: bytes, word: str) -> tuple[_Stacks, int]:
    """Return the samples and where they end."""
    size = struct.calcsize(word)
    order, kind = word[0], word[1]
    position, stacks = 5 * size, _Stacks([], [], False)
    while position + 2 * size <= len(data):
        count, depth = struct.unpack_from(f"{order}2{kind}", data, position)
        after = position + (2 + depth) * size
        if after > len(data):
            break
        addresses = struct.unpack_from(f"{order}{depth}{kind}", data, position + 2 * size)
        position = after
        if (count, addresses) == (0, (0,)):
            return stacks, position
        stacks.counts.append(count)
        stacks.addresses.append(addresses)
    return stacks._replace(cut=True), len(data)


def _with_calls(stacks: _Stacks) -> _Stacks:
    """Lower all addresses but the leaf's by 1: they are where a call returns to, perhaps another function."""
    return stacks._replace(
        addresses=[
            (*stack[:1], *(max(address - 1, 0) for address in stack[1:])) for stack in stacks.addresses
        ]
    )


def _without_handler(stacks: _Stacks) -> _Stacks:
    """Leave out frames next to the leaf that nearly all samples have: those of the signal's handler.

    A leaf that stands there twice, once as if it were a call, is left out too.
    """
    addresses: Sequence[tuple[int, ...]] = stacks.addresses
    enough = len(addresses) - len(addresses) // _SIMILAR
    for _ in range(_HANDLER_FRAMES):
        seconds = Counter(stack[1] for stack in addresses if len(stack) > 1)
        common = {address for address, count in seconds.items() if count >= enough}
        if common:
            addresses = [_without_second(stack, stack[1:2] and stack[1] in common) for stack in addresses]
    return stacks._replace(
        addresses=[_without_second(stack, len(stack) > 1 and stack[0] == stack[1] + 1) for stack in addresses]
    )


def _without_second(addresses: tuple[int, ...], condition: object) -> tuple[int, ...]:
    return (*addresses[:1], *addresses[2:]) if condition else addresses


def _symbols(text: bytes) -> dict[int, str]:
    names = {}
    for address, name in _SYMBOL.findall(text.decode("utf-8", errors="replace")):
        if len(address) <= 16:
            names[int(address, 16)] = _LINE_0.sub(r"\1)", name)
    return names
