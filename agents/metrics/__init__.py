"""Service-level metrics of other systems: decoders, and their conversion into ``metrics`` messages.

``agents.metrics.conversion`` is imported by its own name: it needs numpy, and the readers do not.
"""

from agents.metrics.exposition import read_exposition
from agents.metrics.mapping import MetricMap, load_metric_map
from agents.metrics.otlp import read_otlp_json, read_otlp_metrics
from agents.metrics.reading import Reading, Readings
from agents.metrics.remote_write import read_remote_write
from agents.metrics.replicas import Replicas

__all__ = [
    "MetricMap",
    "Reading",
    "Readings",
    "Replicas",
    "load_metric_map",
    "read_exposition",
    "read_otlp_json",
    "read_otlp_metrics",
    "read_remote_write",
]
