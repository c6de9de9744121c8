"""Makes hostile inputs out of good ones: JSON by its structure, everything else by its bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import orjson

MAX_BYTES = 64 * 1024
"""Longest input that is made; what only shows in longer ones has a test of its own."""

_RAW = {  # written in place of a text, since no JSON library would write them
    "@nan@": b"NaN",
    "@infinity@": b"-Infinity",
    "@beyond@": b"1e999",
    "@tiny@": b"-1e-999",
    "@digits@": b"9" * 5000,
    "@surrogate@": b'"\\ud800"',
    "@reversed@": b'"\\udc00\\ud800"',
    "@nul@": b'"\\u0000"',
    "@control@": b'"\x01"',
    "@latin@": b'"\xe9"',
    "@deep@": b"[" * 900 + b"]" * 900,
    "@deeper@": b'{"a":' * 2000 + b"1" + b"}" * 2000,
    "@twice@": b'{"a":1,"a":2}',
    "@comma@": b"[1,]",
}

HOSTILE: Sequence[Any] = (
    *(None, True, False, 0, -1, 1, 2, 16, 2**31, 2**40, 2**40 + 1, 2**53, 2**63 - 1, 2**63, 2**64 - 1),
    *(0.5, -0.0, 1e-320, 1e100, 1.1e100, 1e308, -1e308, 946_684_800, 4_102_444_799.5, 1_700_000_000_000),
    *("", " ", "a", "\u2028", "‮", "😀", "é" * 4097, "x" * 5000, "0" * 40, "a;b", "endpoint=/x"),
    *("1e5", "re:(a*)*$", "2026-02-30", "9999-12-31T23:59:59-23:59", "0001-01-01", "2026-W05-1", "24:00"),
    *([], {}, [[]], [None], [{}], {"": ""}, [0] * 2000, ["a"] * 300, [[0, 1]] * 50),
    *_RAW,
)

BYTES: Sequence[bytes] = (
    *(
        b"",
        b"\0",
        b"\n",
        b"\r\n",
        b"\r",
        b" ",
        b"\t",
        b";",
        b",",
        b'"',
        b"'",
        b"\\",
        b":",
        b"{",
        b"}",
        b"[",
        b"]",
    ),
    *(
        b"-",
        b"+",
        b"0",
        b"1",
        b"9" * 20,
        b"9" * 5000,
        b"1e999",
        b"nan",
        b"inf",
        b"0x",
        b"0b_",
        b"#",
        b"%",
        b"@",
    ),
    *(b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xe2\x80\xa8", "²".encode(), "１".encode()),
    *(b"(" * 100, b"a::" * 300, b" " * 1000, b"a" * 5000, b"[" * 2000, b"\t" * 500, b"\n" * 2000),
)

Tokens = Sequence[bytes]


def mutate_json(rng: Random, seed: bytes) -> bytes:
    """Change a few places of a JSON document; now and then its bytes too."""
    try:
        document = orjson.loads(seed)
    except orjson.JSONDecodeError:
        return mutate_bytes(rng, seed, ())
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        document = _mutated(rng, document)
    try:
        text = orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # deeper than the library writes
        return mutate_bytes(rng, seed, ())
    for name, raw in _RAW.items():
        text = text.replace(b'"' + name.encode() + b'"', raw)
    if rng.random() < 0.1:
        text = mutate_bytes(rng, text, ())
    return text[:MAX_BYTES]


def mutate_bytes(rng: Random, seed: bytes, tokens: Tokens) -> bytes:
    """Cut, repeat, move and overwrite parts of a text, or put tokens of its format into it."""
    text = bytearray(seed)
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        first, last = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        last = min(last, first + rng.choice((1, 4, 40, 400)))
        change = rng.randrange(6)
        if change == 0:
            del text[first:last]
        elif change == 1:
            text[first:first] = text[first:last] * rng.choice((1, 2, 50))
        elif change == 2:
            text[first:last] = rng.choice(BYTES)
        elif change == 3 and tokens:
            text[first:first] = rng.choice(tokens)
        elif change == 4 and text:
            text[first % len(text)] ^= 1 << rng.randrange(8)
        else:
            text[first:last] = rng.randbytes(rng.choice((1, 2, 8)))
        del text[MAX_BYTES:]
    return bytes(text)


def _mutated(rng: Random, document: Any) -> Any:
    """Change one place, chosen by walking down from the top."""
    if not isinstance(document, dict | list) or not document or rng.random() < 0.15:
        return _CHANGES[rng.randrange(len(_CHANGES))](rng, document)
    if isinstance(document, dict):
        key = rng.choice(list(document))
        changed = dict(document)
        if rng.random() < 0.15:
            del changed[key]
        else:
            changed[key] = _mutated(rng, document[key])
        return changed
    position = rng.randrange(len(document))
    return [*document[:position], _mutated(rng, document[position]), *document[position + 1 :]]


def _replaced(rng: Random, document: Any) -> Any:
    return rng.choice(HOSTILE)


def _shifted(rng: Random, document: Any) -> Any:
    if isinstance(document, bool) or not isinstance(document, int | float):
        return _replaced(rng, document)
    return document + rng.choice((-1, 1, -1e9, 1e9, 0.5)) if abs(document) < 2**53 else -1


def _longer(rng: Random, document: Any) -> Any:
    if isinstance(document, dict):
        return {**document, rng.choice(("x", "id", "", "y" * 5000)): rng.choice(HOSTILE)}
    if isinstance(document, str | list):
        return (document * rng.choice((2, 3, 100)))[:5000]
    return [document]


def _wrapped(rng: Random, document: Any) -> Any:
    for _ in range(rng.choice((1, 2, 20, 60))):
        document = {"group": [document]} if rng.random() < 0.5 else [document]
    return document


_CHANGES: Sequence[Callable[[Random, Any], Any]] = (_replaced, _replaced, _shifted, _longer, _wrapped)
