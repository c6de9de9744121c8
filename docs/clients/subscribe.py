"""Follow regressions of some services, each handled once: python subscribe.py 'shop*'."""

import asyncio
import sys

from smidgen.client import DETECTED, RESOLVED, SeenIds, subscribe


async def follow(services: list[str]) -> None:
    """Print what got slower, and what is well again."""
    with SeenIds("seen.sqlite") as seen:
        async for event in subscribe("my-team", services=services, from_start=True):
            with seen.once(event["id"]) as new:
                if new and event["type"] == DETECTED:
                    data = event["data"]
                    suspects = [suspect["change"]["title"] for suspect in data["root_causes"]]
                    print(f"{data['service']} {data['metric']} +{data['delta']:.4%}", *suspects, flush=True)
                elif new and event["type"] == RESOLVED:
                    print(f"{event['data']['regression']} is resolved", flush=True)


if __name__ == "__main__":
    asyncio.run(follow(sys.argv[1:] or ["*"]))
