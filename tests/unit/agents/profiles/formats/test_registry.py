"""A format is one class and one line: the import knows none by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.profiles.formats import (
    AUTO,
    Measure,
    ProfileSource,
    Reading,
    Sample,
    base,
    find_format,
    format_names,
    register,
)
from agents.profiles.formats.base import joined
from agents.profiles.message import Source
from agents.profiles.profile_files import Import, read_files
from pipeline.messages.measurements import decode_profile
from pipeline.model.errors import ConfigError


class Dummy:
    name = "dummy"
    content = "dummies"

    def recognises(self, head: bytes) -> bool:
        return head.startswith(b"dummy")

    def read(self, source: ProfileSource, value: str) -> Reading:
        samples = [Sample(("main", "dummy"), 3)] if b"!" in source.read_all() else []
        return Reading(Measure(), iter(samples))


@pytest.fixture
def _dummy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_registry", dict(base._registry))
    register(Dummy())


def read(path: Path, content: bytes, format_: str = AUTO) -> tuple[str, ...]:
    path.write_bytes(content)
    (file,) = read_files([path], Import(Source("s", "h"), 1e9, 60.0, 10_000, format_))
    (message,) = file.messages
    return decode_profile(message.value).frames


@pytest.mark.usefixtures("_dummy")
def test_a_dummy_format_is_imported(tmp_path: Path) -> None:
    assert format_names()[-2:] == ("jfr", "dummy")
    assert read(tmp_path / "a", b"dummy!") == ("main", "dummy")
    assert read(tmp_path / "a", b"main;other 1\n") == ("main", "other")
    assert read(tmp_path / "a", b"dummy 1\n", "collapsed") == ("dummy",)
    with pytest.raises(ConfigError, match="has no dummies"):
        read(tmp_path / "a", b"dummy")


def test_no_such_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="should be one of auto, collapsed, perf, pprof, .* not 'other'"):
        read(tmp_path / "a", b"main 1\n", "other")
    monkeypatch.setattr(base, "_registry", {"dummy": Dummy()})
    with pytest.raises(ConfigError, match="no format that is known here: dummy"):
        find_format(AUTO, b"x")


def test_locations_are_joined_from_the_leaf_up_to_a_depth() -> None:
    assert joined([("inlined", "leaf"), ("root",)]) == ("root", "leaf", "inlined")
    assert joined([("leaf",), None]) is None
    bomb = [("f",) * 50_000]
    assert joined(bomb * 2) is not None
    assert joined(bomb * 1_000_000) is None
