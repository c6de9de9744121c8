"""Results of benchmarks over commits: files of many tools as series, and the commits that changed them."""

from agents.experiments.benchmarks import (
    exchange_formats,
    managed_formats,
    native_formats,
    python_formats,
    text_formats,
)
from agents.experiments.benchmarks.changes import (
    LEAST_COMMITS,
    BenchmarkChange,
    find_changes,
    is_judged,
    is_long,
    newest_seen,
)
from agents.experiments.benchmarks.history import BenchmarkHistory, RunsReading, arrange, read_results
from agents.experiments.benchmarks.order import OrderBasis
from agents.experiments.benchmarks.results import LeftOut, Remark, format_names, register
from agents.experiments.benchmarks.series import BenchmarkSeries, changed_labels
from agents.experiments.benchmarks.units import Better

_MODULES = (python_formats, native_formats, managed_formats, exchange_formats, text_formats)
for _format in (item for module in _MODULES for item in module.FORMATS):
    register(_format)

__all__ = [
    "LEAST_COMMITS",
    "BenchmarkChange",
    "BenchmarkHistory",
    "BenchmarkSeries",
    "Better",
    "LeftOut",
    "OrderBasis",
    "Remark",
    "RunsReading",
    "arrange",
    "changed_labels",
    "find_changes",
    "format_names",
    "is_judged",
    "is_long",
    "newest_seen",
    "read_results",
]
