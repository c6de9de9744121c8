"""Metrics of an agent's messages."""

from __future__ import annotations

from agents.publishing.publisher import Delivery
from pipeline.telemetry import metrics as telemetry
from pipeline.telemetry.instruments import Sample


def delivery_samples(delivery: Delivery) -> list[Sample]:
    """Return the outcome of all messages so far, as ``pipeline.telemetry.metrics`` names it."""
    outcomes = (("published", delivery.published), ("dropped", delivery.dropped))
    rows: list[Sample] = [
        (telemetry.AGENT_MESSAGES, {"outcome": outcome}, tally.messages) for outcome, tally in outcomes
    ]
    return [*rows, (telemetry.AGENT_WAITING, {}, delivery.unsent.messages)]
