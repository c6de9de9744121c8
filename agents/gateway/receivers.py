"""All receivers. A new one is a module and a line below."""

from __future__ import annotations

from agents.gateway import (
    datadog,
    otlp_profiles,
    parca,
    pprof_upload,
    profile_message,
    pyroscope_ingest,
    pyroscope_push,
)
from agents.gateway.base import PushProtocol

RECEIVERS: tuple[PushProtocol, ...] = (
    pyroscope_ingest.RECEIVER,
    pyroscope_push.RECEIVER,
    otlp_profiles.RECEIVER,
    parca.RECEIVER,
    pprof_upload.RECEIVER,
    datadog.RECEIVER,
    profile_message.RECEIVER,
)
"""Every protocol that the gateway speaks."""
