"""Files of stack samples as profile messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import orjson
import xxhash

from agents.aggregate import Source, build_profile, encode_within
from agents.formats.collapsed import Collapsed, parse_collapsed
from pipeline.codec.schema.inputs import MAX_COUNT
from pipeline.errors import ConfigError
from pipeline.model import Outgoing, Profile


@dataclass(frozen=True, slots=True)
class Imported:
    """The messages of one file."""

    path: Path
    messages: tuple[Outgoing, ...]
    collapsed: Collapsed
    lost: int  # samples of stacks too large for a message

    def summary(self) -> str:
        """Say in one line what the file held and what was left out."""
        samples, stacks = self.collapsed.samples - self.lost, len(self.collapsed.stacks)
        text = f"{self.path}: {samples} samples in {stacks} stacks"
        if self.collapsed.invalid:
            text += f"; {self.collapsed.invalid} invalid lines, first {self.collapsed.first_invalid}"
        if self.collapsed.frameless:
            text += f"; {self.collapsed.frameless} samples without frames left out"
        if self.lost:
            text += f"; {self.lost} samples of oversized stacks left out"
        return text


def read_files(
    paths: Sequence[Path], *, source: Source, start: float | None, duration_s: float, max_bytes: int
) -> list[Imported]:
    """Read files of collapsed stacks, each an interval of ``duration_s`` seconds.

    With ``start`` (epoch seconds) the files follow one another from there; without, each ended when it was
    last written. Messages have at most ``max_bytes`` bytes.

    Raises:
        ConfigError: a file cannot be read, or holds no stack at all.
    """
    found = []
    for index, path in enumerate(paths):
        try:
            data, written = path.read_bytes(), path.stat().st_mtime
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror or error}") from None
        began = written - duration_s if start is None else start + index * duration_s
        found.append(_read(path, data, source, began, began + duration_s, max_bytes))
    return found


def profile_key(source: Source) -> str:
    """Return the key of a host's profiles."""
    return f"{source.service}/{source.host}"


def _read(path: Path, data: bytes, source: Source, start: float, end: float, max_bytes: int) -> Imported:
    collapsed = parse_collapsed(data)
    if not collapsed.stacks:
        first = f"; {collapsed.first_invalid}" if collapsed.invalid else ""
        raise ConfigError(f"{path}: has no collapsed stacks (lines of root;caller;leaf count){first}")
    if collapsed.samples > MAX_COUNT:
        raise ConfigError(f"{path}: {collapsed.samples} samples, more than the {MAX_COUNT} of one interval")
    profile = build_profile(collapsed.stacks, source=source, start=start, end=end)
    profile = replace(profile, id=_identity(path, data, profile))
    parts, lost = encode_within(profile, max_bytes)
    messages = tuple(Outgoing("profiles", profile_key(source), part.value) for part in parts)
    return Imported(path, messages, collapsed, lost)


def _identity(path: Path, data: bytes, profile: Profile) -> str:
    """Return what is the same when a file is imported again for the same host and interval."""
    labels = sorted(profile.labels.items())
    place = [path.name, profile.host, profile.start, profile.end, profile.release, labels]
    return xxhash.xxh3_128_hexdigest(orjson.dumps(place) + data)
