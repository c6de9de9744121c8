"""Stacks of profile files for simulated services."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from loadgen.fleet.profile_tree import read_stacks
from tests.support.profile_files import FILES


@pytest.mark.parametrize("name", ["collapsed", "pprof", "speedscope"])
def test_compressed_files_are_read_as_well(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    for data in (FILES[name], gzip.compress(FILES[name])):
        path.write_bytes(data)
        assert read_stacks(path) == {("main", "work"): 3, ("main",): 1}
