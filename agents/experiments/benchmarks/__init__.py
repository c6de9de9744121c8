"""Results of benchmarks over commits: files of eight tools as series, and the commits that changed them."""

from agents.experiments.benchmarks import json_formats, text_formats
from agents.experiments.benchmarks.changes import BenchmarkChange, find_changes
from agents.experiments.benchmarks.history import (
    BenchmarkHistory,
    BenchmarkSeries,
    RunsReading,
    arrange,
    read_results,
)
from agents.experiments.benchmarks.results import format_names, register

for _format in (*json_formats.FORMATS, *text_formats.FORMATS):
    register(_format)

__all__ = [
    "BenchmarkChange",
    "BenchmarkHistory",
    "RunsReading",
    "BenchmarkSeries",
    "arrange",
    "find_changes",
    "format_names",
    "read_results",
]
