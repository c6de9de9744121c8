from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.model.errors import ConfigError
from pipeline.settings.config import Settings
from pipeline.stages.factory import STAGES, StageNeeds, build_stage
from pipeline.stages.gather.streams import one_stream
from pipeline.storage.arrays import ArrayStore


def build(name: str, settings: Settings) -> object:
    return build_stage(
        name,
        StageNeeds(
            settings=settings,
            workloads=(),
            store=ArrayStore(),
            streams=one_stream("log"),
            clock=lambda: 0.0,
        ),
    )


@pytest.mark.parametrize("name", STAGES)
def test_every_stage_can_be_built(name: str) -> None:
    assert getattr(build(name, Settings()), "name", None) == name


def test_an_unknown_stage_names_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"unknown stage 'detekt'; stages are aggregate, detect, "):
        build("detekt", Settings())


def test_a_wrong_gates_file_stops_the_worker_before_it_starts(tmp_path: Path) -> None:
    file = tmp_path / "gates.yaml"
    file.write_text("new_cart: cart.total\n")
    with pytest.raises(ConfigError, match="new_cart: should be a list of subroutines"):
        build("rootcause", Settings(gates=file))
    file.write_text("new_cart: [cart.total]\n")
    build("rootcause", Settings(gates=file))


@pytest.mark.parametrize(
    "stage", ["aggregate", "detect", "filter", "dedup", "rootcause", "releases", "judge"]
)
def test_a_worker_starts_without_all_of_scipys_statistics(stage: str) -> None:
    # They take a third of a second of processor time to import; scipy.special has what these stages need.
    modules = f"pipeline.worker, pipeline.commands.worker, pipeline.stages.{stage}"
    shown = subprocess.run(
        [sys.executable, "-c", f"import sys, {modules}; print('scipy.stats' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == "False\n"
