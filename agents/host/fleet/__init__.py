"""Messages between host agents and a gateway: rules one way, statuses the other."""

from agents.host.fleet.client import FleetClient, GatewayUnavailable
from agents.host.fleet.rules import HostRules, read_fleet_rules
from agents.host.fleet.status import (
    AgentStatus,
    FleetView,
    HeardStatus,
    PlannedRates,
    ServiceDemand,
    ServicePlan,
    decode_status,
    encode_status,
)

__all__ = [
    "AgentStatus",
    "FleetClient",
    "FleetView",
    "GatewayUnavailable",
    "HeardStatus",
    "HostRules",
    "PlannedRates",
    "ServiceDemand",
    "ServicePlan",
    "decode_status",
    "encode_status",
    "read_fleet_rules",
]
