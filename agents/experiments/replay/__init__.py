"""Record and replay: requests of a service recorded within bounds, and sent to two builds of it at once.

In an application: ``app = AsgiRecorder(app, Recorder(Path("shop.jsonl.gz")))``, or ``WsgiRecorder``.
"""

from agents.experiments.replay.middleware import AsgiRecorder, WsgiRecorder
from agents.experiments.replay.recorder import Recorder, RecorderConfig
from agents.experiments.replay.redaction import Redaction
from agents.experiments.replay.sampling import SamplingConfig

__all__ = ["AsgiRecorder", "Recorder", "RecorderConfig", "Redaction", "SamplingConfig", "WsgiRecorder"]
