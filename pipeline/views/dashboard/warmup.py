"""Warm-up: work that the first requests would wait for, done before the server listens."""

from __future__ import annotations

import gc

import numpy as np

from pipeline.model import StackMatrix, StrataMatrix
from pipeline.views.dashboard.comparison import StackComparison
from pipeline.views.dashboard.figures import figure_json
from pipeline.views.dashboard.flames import flames_of
from pipeline.views.dashboard.site import Site
from pipeline.views.report.figures import series_figure
from pipeline.views.report.windows import DrawnSeries, ScanWindows

_WINDOWS = ScanWindows(60.0, 0.0, 120.0, 180.0, 240.0)
_LINE = DrawnSeries(np.arange(0.0, 240.0, 60.0), np.array([0.1, 0.1, 0.2, 0.2]), ratio=True)
_STACKS = StackMatrix((("main", "first"), ("main", "second")), np.ones(2), np.array([1.0, 2.0]), 2.0, 3.0)
_NOBODY = StrataMatrix(0.0, 60.0, (), np.zeros((0, 1)), (), np.zeros((0, 0)))


def warm_up(site: Site) -> None:
    """Compile all templates, and draw one figure of each kind, for which plotly loads its modules.

    Objects in memory by now stay, so they are excluded from garbage collection: with 10,000 regressions it
    takes a tenth of a second.
    """
    site.compile_templates()
    figure_json(series_figure(_LINE, _WINDOWS, 120.0, 0.1, 0.2, interval=(60.0, 180.0)))
    span = (0.0, 120.0), (120.0, 240.0)
    flames_of(StackComparison(_STACKS, span, _NOBODY, compared=True, dispersion=1.0, lacking=""), "service")
    gc.collect()
    gc.freeze()
