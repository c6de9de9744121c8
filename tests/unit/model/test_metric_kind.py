"""A new kind of metric is declared in one file: a copy of the program with two more proves it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from pipeline.model import METRIC_KINDS, AnnotationKind, MetricKind, is_gcpu
from tests.support.paths import ROOT

PROGRAM = """
import orjson
from pipeline.codec.inputs import decode_profile
from pipeline.codec.scans import decode_scan, encode_scan
from pipeline.codec.schema.generate import message_schemas
from pipeline.frames import element, series_of
from pipeline.gcpu.count import count_samples
from pipeline.model import Candidate, Scan, is_gcpu

T0 = 1_760_000_000.0
profile = decode_profile(orjson.dumps({
    "service": "s", "host": "h", "start": T0, "end": T0 + 1, "frames": ["main", "work"],
    "stacks": [[0, 1]], "counts": [3], "annotations": [{"frame": 1, "kind": "tenant", "value": "acme"}],
}))
counted = count_samples([profile], [0], window_s=60.0, stack_window_s=300.0)
assert ("tenant", "acme") in zip(counted.kinds, counted.names), counted.kinds
assert series_of(element("tenant", "acme")) == ("tenant", "acme")
assert is_gcpu("tenant") and not is_gcpu("heap")
found = tuple(Candidate(kind, "m", "short_term", T0, 1, 2, 0, 9) for kind in ("tenant", "heap"))
scan = Scan("s", "w", T0, T0, T0, T0, 2, found)
assert decode_scan(encode_scan(scan)) == scan
assert "heap" in orjson.dumps(message_schemas()["regression-detected"]).decode()
"""


def test_a_kind_takes_one_file(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "pipeline", tmp_path / "pipeline", ignore=shutil.ignore_patterns("__pycache__"))
    declared = tmp_path / "pipeline" / "model" / "metric_kind.py"
    text = declared.read_text()
    for before, after in (
        ('"metadata", "service"]', '"metadata", "service", "tenant", "heap"]'),
        ('["endpoint", "metadata"]', '["endpoint", "metadata", "tenant"]'),
        (
            '    "service": Measure(',
            '    "tenant": Measure(gcpu=True, prefix="tenant="),\n'
            '    "heap": Measure(gcpu=False),\n    "service": Measure(',
        ),
    ):
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    declared.write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


def test_every_kind_is_declared_with_its_measure() -> None:
    assert tuple(METRIC_KINDS) == get_args(MetricKind)
    annotating = [kind for kind, measure in METRIC_KINDS.items() if measure.gcpu and measure.prefix]
    assert tuple(annotating) == get_args(AnnotationKind)


@pytest.mark.parametrize(
    ("kind", "gcpu"), [("subroutine", True), ("endpoint", True), ("metadata", True), ("service", False)]
)
def test_only_metrics_of_a_service_have_a_unit_of_their_own(kind: str, gcpu: bool) -> None:
    assert is_gcpu(kind) == gcpu
