"""Results of benchmarks over commits: files of eight tools as series, and the commits that changed them."""

from agents.experiments.benchmarks import json_formats, text_formats
from agents.experiments.benchmarks.changes import LEAST_COMMITS, BenchmarkChange, find_changes, is_judged
from agents.experiments.benchmarks.history import BenchmarkHistory, RunsReading, arrange, read_results
from agents.experiments.benchmarks.order import OrderBasis
from agents.experiments.benchmarks.results import LeftOut, format_names, register
from agents.experiments.benchmarks.series import BenchmarkSeries, changed_labels

for _format in (*json_formats.FORMATS, *text_formats.FORMATS):
    register(_format)

__all__ = [
    "LEAST_COMMITS",
    "BenchmarkChange",
    "BenchmarkHistory",
    "BenchmarkSeries",
    "LeftOut",
    "OrderBasis",
    "RunsReading",
    "arrange",
    "changed_labels",
    "find_changes",
    "format_names",
    "is_judged",
    "read_results",
]
