"""Profiles and metrics that are fetched, such as those of Go's ``/debug/pprof/profile``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial

import aiohttp
import xxhash

from agents.gateway.access import EVERYBODY, Client
from agents.gateway.base import Decoded, DecodeSetup, PushProtocol, Refusal, Request
from agents.gateway.intake import RequestIntake
from agents.gateway.profiles import Pushed, profile_parts
from agents.gateway.targets import ScrapeTarget
from pipeline.model.clock import Clock
from pipeline.processes import TaskSupervisor

log = logging.getLogger(__name__)

MAX_AT_ONCE = 100
"""Most profiles that are fetched at a time: each waits for its service to sample."""

GRACE_S = 10.0
"""Seconds that an answer may take beyond the sampling."""

MAX_PROFILE_BYTES = 32 * 1024**2
_CHUNK = 65_536
_HEADERS: Mapping[str, Mapping[str, str]] = {
    "profile": {},
    "metrics": {
        "Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
        "Accept-Encoding": "identity",
    },
}


def decode_fetched(request: Request, setup: DecodeSetup) -> Decoded:
    """Read a profile that was fetched; the query of the request are its labels."""
    pushed = Pushed(request.body, request.query, identity=request.path)
    return profile_parts(pushed, request, setup)


FETCHED = PushProtocol("scrape", (), decode_fetched)
"""Receiver of fetched profiles: they are processed like pushed ones, but have no path."""


class Scraper:
    """Fetches every target once an interval, at a moment derived from its name, to spread the load."""

    def __init__(
        self,
        intake: RequestIntake,
        metrics: PushProtocol | None = None,
        *,
        clock: Clock,
        tasks: TaskSupervisor | None = None,
    ) -> None:
        self._intake = intake
        self._tasks = tasks or TaskSupervisor()
        self._receivers = {"profile": FETCHED, "metrics": metrics}
        self._clock = clock
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)
        self._running: dict[ScrapeTarget, asyncio.Task[None]] = {}
        self._session: aiohttp.ClientSession | None = None

    def follow(self, targets: Sequence[ScrapeTarget]) -> None:
        """Fetch these targets from now on; targets that are fetched already continue."""
        wanted = set(targets)
        for target in set(self._running) - wanted:
            self._running.pop(target).cancel()
        for target in wanted - set(self._running):
            self._running[target] = self._tasks.run(
                f"scrape {target.name}", partial(self._fetch_always, target)
            )
        log.info("fetching %d targets", len(wanted))

    async def close(self) -> None:
        """Fetch no more."""
        for task in self._running.values():
            task.cancel()
        if self._running:
            await asyncio.wait(set(self._running.values()))
        if self._session:
            await self._session.close()

    async def _fetch_always(self, target: ScrapeTarget) -> None:
        while True:
            await asyncio.sleep(wait_s(target, self._clock()))
            async with self._slots:
                await self._fetch(target)

    async def _fetch(self, target: ScrapeTarget) -> None:
        try:
            body, content_type = await self._download(target)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._intake.counts.scrape("unreachable")
            self._intake.counts.say("scrape", target.name, f"{target.name}: {error or type(error).__name__}")
            return
        except Refusal as refusal:
            self._intake.counts.scrape(refusal.reason)
            self._intake.counts.say("scrape", target.name, f"{target.name}: {refusal.text}")
            return
        receiver = self._receivers[target.collects]
        if receiver is None:
            return
        headers = {"content-type": content_type}
        request = Request(target.url, body, self._clock(), target.name, dict(target.labels), headers)
        result = await self._intake.take(receiver, Client(EVERYBODY), request)
        self._intake.counts.scrape("taken" if result.is_taken else result.reason)

    async def _download(self, target: ScrapeTarget) -> tuple[bytes, str]:
        if self._session is None:
            self._session = aiohttp.ClientSession(trust_env=False, auto_decompress=False)
        timeout = aiohttp.ClientTimeout(total=target.seconds + GRACE_S)
        async with self._session.get(
            target.url, timeout=timeout, allow_redirects=False, headers=_HEADERS[target.collects]
        ) as answer:
            if answer.status != 200:
                raise Refusal(502, "status", f"answers {answer.status}")
            body = bytearray()
            async for chunk in answer.content.iter_chunked(_CHUNK):
                body += chunk
                if len(body) > MAX_PROFILE_BYTES:
                    raise Refusal(413, "too_large", f"larger than {MAX_PROFILE_BYTES} bytes")
            return bytes(body), answer.headers.get("Content-Type", "")


def wait_s(target: ScrapeTarget, now: float) -> float:
    """Return the seconds to the target's next moment: one in each interval, derived from its name."""
    share = xxhash.xxh3_64_intdigest(target.name.encode()) / 2**64
    return (share * target.interval_s - now) % target.interval_s
