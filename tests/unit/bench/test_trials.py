"""Rows of ``smidgen bench trials``: models where they apply, and what is beside them."""

from __future__ import annotations

import pytest

from loadgen.bench.trials import table
from loadgen.bench.trials.simulate import DISTRIBUTIONS
from pipeline.experiments.trials import MODELS


@pytest.mark.parametrize(("name", "by_request"), [("normal", False), ("requests", True)])
def test_rows_are_of_models_that_apply(monkeypatch: pytest.MonkeyPatch, name: str, by_request: bool) -> None:
    monkeypatch.setattr(table, "HISTORY", 20)
    rows = {row.model: row for row in table.measure(DISTRIBUTIONS[name], 4, 40, 0.05, 1)}
    models = {model for model in MODELS if by_request or not MODELS[model].by_request}
    assert set(rows) == {*models, table.ADAPTIVE, table.CONTROLLED, table.ANYTIME}
    assert rows[table.CONTROLLED].detectability < rows["paired-t-test"].detectability
