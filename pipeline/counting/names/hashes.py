"""Content hashes in names of files: ``index-BfX3kQ9z.js``, but not ``c-Sha256Fn.js``."""

from __future__ import annotations

import re

_BUNDLE = re.compile(r"(?<=[\w\])])[.-](?P<hash>[0-9a-zA-Z]{8,64})(?=(?:\.(?:min|bundle|chunk))*\.[mc]?js\b)")
_HEXADECIMAL = re.compile(r"[0-9a-f]+")
_HEXADECIMAL_WIDTHS = frozenset((8, 10, 12, 16, 20, 32, 40, 64))
"""Digits that Parcel, Rollup, webpack, Next.js and Sprockets write."""

_WIDTH = 8
"""Characters that Vite and Rollup (of both cases) and esbuild (capitals, 2 to 7) write."""

_CAPITALS = re.compile(r"[A-Z2-7]{8}")
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_WORD = re.compile(r"(?=.*[aeiouyAEIOUY])[A-Za-z]{3,}")
_TERM = re.compile(
    r"[A-Za-z]?\d*To(?=[A-Z])|IPv?\d|[vV]\d|[iIuUfFxXbB](?:8|16|32|64|128|86)|[aAgoO]11[yn]|i18n|[lL]10n|k8s"
    r"|[eE]2[eE]|[bBpP]2[bBpP]|[hHxX]26[45]|[xX]509|[mM][pP][34]|[sS]3|E[cC]2|[23][dD]|[eE]d25519"
    r"|HTTPS?|HTML|CSS|XML|SQL|TCP|SSH|TLS|SSL|CRC|RSA|MD"
)
"""Terms of the field of one character and a digit, or without vowels."""

_LEAST_PIECES = 3
_LEAST_SINGLE = 2


def without_bundle_hash(name: str) -> str:
    """Return a frame without the content hash in its file's name; a hash that could be words stays."""
    return _BUNDLE.sub(lambda match: "" if _is_of_bundle(match) else match[0], name)


def _is_of_bundle(match: re.Match[str]) -> bool:
    """Return whether a match is a hash; what esbuild calls ``chunk-`` is followed by one, but for words."""
    text = match["hash"]
    is_chunk = match.string.endswith("chunk", 0, match.start()) and _CAPITALS.fullmatch(text)
    return bool(is_chunk and len(_PIECE.findall(text)) >= _LEAST_PIECES) or is_content_hash(text)


def is_content_hash(text: str) -> bool:
    """Return whether a text is a bundler's hash by its width and digits, and shows no words, date or number.

    Of random hashes it recognises 76 % of eight hexadecimal digits and 95 % of 16, 45 % of esbuild's, 70 % of
    those of its chunks, and 21 % of Vite's. Two files under one name hide a change; a hash that stays begins
    series anew.
    """
    if text.isdecimal() or not any(map(str.isdecimal, text)):
        return False
    pieces = _PIECE.findall(_TERM.sub(" ", text))
    if _HEXADECIMAL.fullmatch(text):
        wordless = len(text) >= 2 * _WIDTH or not any(map(_WORD.fullmatch, pieces))
        return len(text) in _HEXADECIMAL_WIDTHS and len(pieces) >= len(text) / 4 + 1 and wordless
    if len(text) != _WIDTH:
        return False
    if _CAPITALS.fullmatch(text):
        return len(pieces) >= _LEAST_PIECES and any(
            len(piece) > 1 and piece.isalpha() and not _WORD.fullmatch(piece) for piece in pieces
        )
    single = [piece for piece in pieces if len(piece) == 1 and piece.isalpha()]
    return len(single) >= _LEAST_SINGLE and not any(map(_WORD.fullmatch, pieces))
