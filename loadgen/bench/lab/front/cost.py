"""CPU time of a request over that of fixed work: ``python -m front.cost`` in a folder that holds ``shop``.

How fast a shared core is differs by a few percent for seconds at a time, and so does the work after each
request. Of both the least counts: what others do on the machine only adds.
"""

from __future__ import annotations

import asyncio
import hashlib
import time

from aiohttp import ClientSession, web

from .layout import fix_layout

WARM_UP = 3
REQUESTS = 30
FIXED_ROUNDS = 60_000
TARGET = "/login?name=ada&password=correct+horse"


async def cost() -> float:
    """Return what a request costs this process, which serves and asks, over what the fixed work does."""
    from shop.app import create_app  # type: ignore[import-not-found]  # of the commit in this folder

    runner = web.AppRunner(create_app(), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    requests, fixed = [], []
    async with ClientSession(f"http://{host}:{port}") as session:
        for _ in range(WARM_UP + REQUESTS):
            began = time.process_time_ns()
            async with session.get(TARGET) as answer:
                answer.raise_for_status()
                await answer.read()
            answered = time.process_time_ns()
            hashlib.pbkdf2_hmac("sha256", b"fixed", b"work", FIXED_ROUNDS)
            requests.append(answered - began)
            fixed.append(time.process_time_ns() - answered)
    await runner.cleanup()
    return min(requests[WARM_UP:]) / min(fixed[WARM_UP:])


if __name__ == "__main__":
    fix_layout()
    print(asyncio.run(cost()))
