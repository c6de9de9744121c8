"""Worker: the Faust app of each stage, the one loop, and the service that runs them in a process."""

from pipeline.runtime.worker.checks import BrokerCheck, StoreCheck
from pipeline.runtime.worker.health import Check, health_address
from pipeline.runtime.worker.service import Service

__all__ = ["BrokerCheck", "Check", "Service", "StoreCheck", "health_address"]
