"""Series files: metrics over time as people have them, in the formats of ``formats.FORMATS``."""

from pipeline.backtest.seriesfile.quantities import Decimal
from pipeline.backtest.seriesfile.reader import read_series
from pipeline.backtest.seriesfile.series import Duplicates, Series
from pipeline.backtest.seriesfile.table import METADATA

__all__ = ["METADATA", "Decimal", "Duplicates", "Series", "read_series"]
