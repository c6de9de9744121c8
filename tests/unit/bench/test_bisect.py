"""``smidgen bench bisect``: simulated ranges of commits."""

from __future__ import annotations

import orjson
from click.testing import CliRunner

from loadgen.bench.bisection.command import NOISE_NAMES
from loadgen.bench.bisection.simulate import NOISES
from pipeline.cli import smidgen


def test_the_posterior_is_held_beside_plain_searches() -> None:
    arguments = ["--searches", "4", "--commits", "8", "--step", "8", "--noise", "normal", "--json"]
    shown = CliRunner().invoke(smidgen, ["bench", "bisect", *arguments], standalone_mode=False)
    rows = {row["search"]: row for row in map(orjson.loads, shown.stdout.splitlines())}
    assert len(rows) == 4
    assert rows["posterior"]["found"] == 1.0
    assert rows["posterior"]["builds"] <= 6
    assert rows["posterior"]["runs"] < rows["binary, 5 runs each"]["runs"]


def test_the_command_knows_the_names_of_all_noises() -> None:
    assert tuple(NOISES) == NOISE_NAMES
