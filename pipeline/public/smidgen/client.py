"""A client for subscribers: regression events, typed, resumable, each handled once.

from smidgen.client import DETECTED, SeenIds, subscribe

async def follow() -> None:
    with SeenIds("seen.sqlite") as seen:
        async for event in subscribe("my-team", services=("shop*",)):
            with seen.once(event["id"]) as new:
                if new and event["type"] == DETECTED:
                    print(event["data"]["metric"], event["data"]["delta"])
"""

from pipeline.delivery.client import (
    DETECTED,
    RESOLVED,
    UPDATED,
    Event,
    RegressionDetected,
    RegressionResolved,
    RegressionUpdated,
    SeenIds,
    history,
    subscribe,
)

__all__ = [
    "DETECTED",
    "RESOLVED",
    "UPDATED",
    "Event",
    "RegressionDetected",
    "RegressionResolved",
    "RegressionUpdated",
    "SeenIds",
    "history",
    "subscribe",
]
