"""All receivers. A new one is a module and a line below."""

from __future__ import annotations

from agents.gateway import pprof_upload
from agents.gateway.base import Receiver

RECEIVERS: tuple[Receiver, ...] = (pprof_upload.RECEIVER,)
"""Every protocol that the gateway speaks."""
