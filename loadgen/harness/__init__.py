"""Harness of the benches: a bench is a request, cases, a function of one case, and columns."""

from loadgen.harness.experiment import Advance, BenchExperiment, bench, lines, measured, table, terminal_table
from loadgen.harness.result import BenchResult, figure_columns, print_results
from loadgen.harness.statistics import Mean, Ratio, mean, mean_of, median, offsets_of, paired_ratio, ratio_of
from loadgen.harness.workers import results_of_workers, run_in_workers, run_smidgen, worker_pool

__all__ = [
    "Advance",
    "BenchExperiment",
    "Mean",
    "Ratio",
    "BenchResult",
    "bench",
    "figure_columns",
    "lines",
    "mean",
    "mean_of",
    "measured",
    "median",
    "offsets_of",
    "paired_ratio",
    "print_results",
    "ratio_of",
    "results_of_workers",
    "run_in_workers",
    "run_smidgen",
    "table",
    "terminal_table",
    "worker_pool",
]
