"""Files of a dataset folder (docs/backtest.md)."""

from __future__ import annotations

from pathlib import Path

_LINES = ("changes", "truth", "feedback")
_TABLES = ("series", "totals", "strata", "stacks", "frames", "metrics")


def dataset_files(path: Path) -> list[Path]:
    """Return the paths of all files that a dataset folder may hold."""
    lines, tables = (f"{name}.jsonl" for name in _LINES), (f"{name}.parquet" for name in _TABLES)
    return [path / name for name in ("dataset.json", *lines, *tables)]
