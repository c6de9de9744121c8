"""Source of a profile: its bytes, read once and forward, unpacked if they are compressed (gzip)."""

from __future__ import annotations

import codecs
import io
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import orjson

HEAD_BYTES = 65_536
"""Bytes of a file by which formats are recognised."""

MAX_BYTES = 2**30
"""Most bytes, once unpacked, of a profile that has to be in memory as a whole: far beyond any real one."""

MAX_JSON_BYTES = 2**28
"""The same for JSON, which takes several times its size in memory."""

MAX_LINE = 2**20
"""Most characters of a line; the rest of a longer one is skipped."""

CUT = "…"
"""End of a line that was cut."""

_CHUNK = 2**18
_GZIP = b"\x1f\x8b"
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Damaged(Exception):
    """A file that is cut or damaged: nothing after this point can be read."""


class ProfileSource:
    """The content of a profile file.

    Args:
        stream: Where the bytes come from; it need not be seekable.
        on_read: Called with all bytes as they are read, before they are unpacked.
        head_bytes: Bytes to wait for at first; few if the file is being written while it is read.
    """

    def __init__(
        self,
        stream: BinaryIO,
        on_read: Callable[[bytes], object] | None = None,
        head_bytes: int = HEAD_BYTES,
    ) -> None:
        self._stream, self._on_read, self._head_bytes = stream, on_read, head_bytes
        self._content = self._unpacked()
        self._damage: Damaged | None = None
        self.head = self._first()
        """The first bytes, unpacked: ``head_bytes`` of them or more, unless the file is shorter."""

    @classmethod
    def of(cls, data: bytes) -> ProfileSource:
        """Return a source of bytes in memory."""
        return cls(io.BytesIO(data))

    def chunks(self) -> Iterator[bytes]:
        """Yield the content from its beginning; it can be read once.

        Raises:
            Damaged: the compressed file is cut or damaged.
        """
        yield self.head
        if self._damage:
            raise self._damage
        yield from self._content

    def read_all(self, limit: int | None = None) -> bytes:
        """Return the content.

        Raises:
            Damaged: it is cut, damaged, or has more bytes than the limit (default: ``MAX_BYTES``).
        """
        limit = MAX_BYTES if limit is None else limit
        content = bytearray()
        for chunk in self.chunks():
            content += chunk
            if len(content) > limit:
                raise Damaged(f"has more than {limit} bytes once it is unpacked")
        return bytes(content)

    def read_json(self) -> Any:
        """Return the JSON document.

        Raises:
            Damaged: it is cut or damaged, nested too deeply, or too large.
        """
        content = self.read_all(MAX_JSON_BYTES)
        mark, encoding = encoding_of(content)
        try:
            text = content[mark:] if encoding == "utf-8" else content[mark:].decode(encoding)
            return orjson.loads(text)
        except (orjson.JSONDecodeError, UnicodeDecodeError) as error:
            raise Damaged(f"not readable as JSON: {error}") from None

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the lines with their numbers, without line feeds; only these end lines.

        UTF-8 and UTF-16 are distinguished by their byte order mark or by the NUL bytes of the latter.

        Raises:
            Damaged: the compressed file is cut or damaged.
        """
        number, rest, skipping = 1, "", False
        for text in self._texts():
            first, *following_lines = text.split("\n")
            rest = rest if skipping else rest + first
            for following in following_lines:
                yield number, rest
                number, rest, skipping = number + 1, following, False
            if len(rest) > MAX_LINE:
                rest, skipping = rest[:MAX_LINE] + CUT, True
        if rest:
            yield number, rest

    def drain(self) -> None:
        """Read to the end, so that ``on_read`` has seen all bytes; damage is ignored."""
        while chunk := self._stream.read(_CHUNK):
            if self._on_read:
                self._on_read(chunk)

    def _texts(self) -> Iterator[str]:
        mark, encoding = encoding_of(self.head)
        decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        for chunk in self.chunks():
            yield decoder.decode(chunk[mark:])
            mark = 0
        yield decoder.decode(b"", final=True)

    def _first(self) -> bytes:
        head = bytearray()
        try:
            for chunk in self._content:
                head += chunk
                if len(head) >= self._head_bytes:
                    break
        except Damaged as damage:
            self._damage = damage
        return bytes(head)

    def _raw(self) -> Iterator[bytes]:
        while chunk := self._stream.read(_CHUNK):
            if self._on_read:
                self._on_read(chunk)
            yield chunk

    def _unpacked(self) -> Iterator[bytes]:
        raw = self._raw()
        first = next(raw, b"")
        while 0 < len(first) < len(_GZIP) and (more := next(raw, b"")):
            first += more
        if not first.startswith(_GZIP):
            yield first
            yield from raw
            return
        yield from _gunzip(first, raw)


def encoding_of(head: bytes) -> tuple[int, str]:
    """Return the length of a text's byte order mark, and its encoding."""
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return len(mark), encoding
    first = head[:256]
    if len(first) >= 4:
        if not any(first[1::2]):
            return 0, "utf-16-le"
        if not any(first[0::2]):
            return 0, "utf-16-be"
    return 0, "utf-8"


def head_text(head: bytes) -> str:
    """Return the first bytes of a file as text."""
    mark, encoding = encoding_of(head)
    return head[mark:].decode(encoding, errors="replace")


def whole_lines(head: bytes) -> bytes:
    """Return the first bytes of a file without the line that they cut; all of them if they cut none."""
    return head if len(head) < HEAD_BYTES else head[: head.rfind(b"\n") + 1]


def _gunzip(first: bytes, raw: Iterator[bytes]) -> Iterator[bytes]:
    """Unpack one member after the other, a bounded piece at a time."""
    unpacking, packed = zlib.decompressobj(wbits=31), first
    while True:
        try:
            content = unpacking.decompress(packed, _CHUNK)
        except zlib.error as error:
            raise Damaged(f"not readable as gzip: {error}") from None
        if content:
            yield content
        packed = unpacking.unconsumed_tail
        if unpacking.eof:
            packed = unpacking.unused_data.lstrip(b"\0") or next(raw, b"")
            if not packed.lstrip(b"\0"):
                return
            unpacking = zlib.decompressobj(wbits=31)
        elif not packed and not content:
            packed = next(raw, b"")
            if not packed:
                raise Damaged("cut: the end of the compressed file is missing")


def list_in(value: Any, name: str) -> list[Any]:
    """Return a list within a JSON object; empty if either is something else."""
    member = value.get(name) if isinstance(value, dict) else None
    return member if isinstance(member, list) else []


def object_in(value: Any, name: str) -> dict[str, Any]:
    """Return an object within a JSON object; empty if either is something else."""
    member = value.get(name) if isinstance(value, dict) else None
    return member if isinstance(member, dict) else {}
