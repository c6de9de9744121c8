"""A client for subscribers: regression events, typed, resumable, each handled once.

from pipeline.delivery.client import DETECTED, SeenIds, subscribe

async def follow() -> None:
    with SeenIds("seen.sqlite") as seen:
        async for event in subscribe("my-team", services=("shop*",)):
            with seen.once(event["id"]) as new:
                if new and event["type"] == DETECTED:
                    print(event["data"]["metric"], event["data"]["delta"])
"""

from pipeline.delivery.client.seen_ids import SeenIds
from pipeline.delivery.client.subscription import Event, history, subscribe
from pipeline.messages.events import DETECTED, RESOLVED, UPDATED
from pipeline.messages.schema.events import RegressionDetected, RegressionResolved, RegressionUpdated

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
