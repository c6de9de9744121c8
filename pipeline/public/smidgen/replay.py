"""Recorder of a Python application's requests, as middleware: ``app = AsgiRecorder(app, Recorder(path))``.

``smidgen replay run`` sends the recorded requests to two builds at the same moment.
"""

from agents.experiments.replay import (
    AsgiRecorder,
    Recorder,
    RecorderConfig,
    Redaction,
    SamplingConfig,
    WsgiRecorder,
)

__all__ = ["AsgiRecorder", "Recorder", "RecorderConfig", "Redaction", "SamplingConfig", "WsgiRecorder"]
