"""The file of quotas."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.counting.quota.limits import Quota
from pipeline.model.errors import ConfigError
from pipeline.settings.config import Settings
from pipeline.settings.quotas import read_quotas
from pipeline.stages.factory import StageNeeds, build_stage
from pipeline.stages.gather.streams import one_stream
from pipeline.storage.arrays import ArrayStore


@pytest.mark.parametrize(
    ("text", "service", "wanted"),
    [
        pytest.param("", "shop", Quota(), id="an empty file changes nothing"),
        pytest.param("default: {names: 5}", "shop", Quota(names=5), id="the default is everybody's"),
        pytest.param(
            "default: {names: 5}\nservices: {shop: {messages: 7}}",
            "shop",
            Quota(names=5, messages=7),
            id="a service inherits what it does not say",
        ),
        pytest.param("services: {shop: {messages: 7}}", "cart", Quota(), id="others are not touched"),
    ],
)
def test_a_quotas_file(tmp_path: Path, text: str, service: str, wanted: Quota) -> None:
    file = tmp_path / "quotas.yaml"
    file.write_text(text)
    assert read_quotas(file).of(service) == wanted


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        pytest.param("default: {name: 5}", r"default\.name: unknown key; known keys are", id="unknown key"),
        pytest.param("services: {shop: {names: -1}}", r"services\.shop: names: ", id="negative"),
        pytest.param("services: {'': {names: 1}}", "should not be empty", id="no name"),
        pytest.param("- a", "should be a mapping", id="not a mapping"),
    ],
)
def test_a_wrong_quotas_file_stops_the_worker_before_it_starts(tmp_path: Path, text: str, wrong: str) -> None:
    file = tmp_path / "quotas.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=wrong):
        build_stage(
            "aggregate",
            StageNeeds(
                settings=Settings(quotas=file),
                workloads=(),
                store=ArrayStore(),
                streams=one_stream("log"),
                clock=lambda: 0.0,
            ),
        )
