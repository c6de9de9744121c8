"""Worker: the Faust app of each stage, the one loop, and the service that runs them in a process."""

from pipeline.worker.checks import BrokerCheck, StoreCheck
from pipeline.worker.health import Check, health_address
from pipeline.worker.service import Service

__all__ = ["BrokerCheck", "Check", "Service", "StoreCheck", "health_address"]
