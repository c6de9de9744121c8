"""A new kind of metric is declared in one file: a copy of the program with two more proves it."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from pipeline.model import METRIC_KINDS, AnnotationKind, MetricKind, is_gcpu
from tests.support.copies import run_with

PROGRAM = """
import orjson
from pipeline.messages.measurements import decode_profile
from pipeline.messages.scans import decode_scan, encode_scan
from pipeline.messages.schema.generate import message_schemas
from pipeline.model.frames import element, series_of
from pipeline.counting.count import count_samples
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


EDITS = {
    "pipeline/model/metric_kind.py": {
        '"metadata", "service"]': '"metadata", "service", "tenant", "heap"]',
        '["endpoint", "metadata"]': '["endpoint", "metadata", "tenant"]',
        '    "service": KindMeasure(': (
            '    "tenant": KindMeasure(gcpu=True, prefix="tenant="),\n'
            '    "heap": KindMeasure(gcpu=False),\n    "service": KindMeasure('
        ),
    }
}


def test_a_kind_takes_one_file(tmp_path: Path) -> None:
    run_with(EDITS, PROGRAM, tmp_path)


def test_every_kind_is_declared_with_its_measure() -> None:
    assert tuple(METRIC_KINDS) == get_args(MetricKind)
    annotating = [kind for kind, measure in METRIC_KINDS.items() if measure.gcpu and measure.prefix]
    assert tuple(annotating) == get_args(AnnotationKind)


@pytest.mark.parametrize(
    ("kind", "gcpu"), [("subroutine", True), ("endpoint", True), ("metadata", True), ("service", False)]
)
def test_only_metrics_of_a_service_have_a_unit_of_their_own(kind: str, gcpu: bool) -> None:
    assert is_gcpu(kind) == gcpu
