"""The gateway as controller of host agents: it serves their rules, and keeps their statuses."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import orjson
from aiohttp import ClientPayloadError, web

from agents.gateway.base import JSON, Refusal, malformed
from agents.gateway.intake import RequestIntake
from agents.gateway.rate_plans import RatePlans
from agents.host.fleet.client import AGENTS_PATH, RULES_PATH, STATUS_PATH
from agents.host.fleet.rules import HostRules, read_fleet_rules
from agents.host.fleet.status import MAX_STATUS_BYTES, SILENT_S, PlannedRates, decode_status, encode_status
from agents.host.rules_file import parse_fleet_config
from pipeline.model.clock import Clock
from pipeline.model.errors import ConfigError, InvalidMessage
from pipeline.settings.workloads import Workload

log = logging.getLogger(__name__)

MOST_HOSTS = 5_000
MOST_BYTES = 64 * 1024**2
"""Bounds of the statuses that are kept; those heard longest ago are forgotten first."""

FORGET_S = 24 * 3600.0
"""A host without a status for so long no longer belongs to the fleet."""

BODY_S = 10.0
"""Seconds that reading a status may take."""


class Statuses:
    """The last status of each host's agent, bounded."""

    def __init__(self, *, hosts: int = MOST_HOSTS, size: int = MOST_BYTES) -> None:
        self._hosts = hosts
        self._bytes = size
        self._kept: OrderedDict[str, tuple[float, bytes]] = OrderedDict()  # heard longest ago first
        self._size = 0

    def keep(self, host: str, status: bytes, now: float) -> None:
        """Replace the status of a host, as JSON."""
        self._forget(host)
        self._kept[host] = (now, status)
        self._size += len(status)
        while len(self._kept) > self._hosts or self._size > self._bytes:
            self._forget(next(iter(self._kept)))
        self._forget_silent(now)

    def heard(self, now: float) -> list[tuple[float, bytes]]:
        """Return, by host, when its status was heard, and the status."""
        self._forget_silent(now)
        return [self._kept[host] for host in sorted(self._kept)]

    def _forget(self, host: str) -> None:
        _, status = self._kept.pop(host, (0.0, b""))
        self._size -= len(status)

    def _forget_silent(self, now: float) -> None:
        while self._kept and now - next(iter(self._kept.values()))[0] > FORGET_S:
            self._forget(next(iter(self._kept)))


class AgentFleet:
    """Rules of a file, and the statuses of the agents that follow them; the event loop alone uses it."""

    def __init__(self, path: Path, workloads: Sequence[Workload] = (), *, clock: Clock) -> None:
        self.statuses = Statuses()
        self._path = path
        self._clock = clock
        self._plans = RatePlans(workloads, clock())
        self.rules = self._load()

    def reload(self) -> None:
        """Read the file again; a wrong one leaves the rules as they are."""
        try:
            self.rules = self._load()
        except ConfigError as error:
            log.error("the fleet's rules stay as they were: %s", error)
        else:
            log.info("the fleet's rules are those of %s, version %s", self._path, self.rules.version)

    def take(self, body: bytes) -> bytes:
        """Keep a status; return the rates planned for its services, as JSON, empty if there are none.

        Raises:
            Refusal: it is no status.
        """
        try:
            status = decode_status(body)
        except InvalidMessage as error:
            raise malformed(error) from None
        self.statuses.keep(status.host, encode_status(status), self._clock())
        self._plan()
        rates_hz = self._plans.rates_hz(status.planned)
        return orjson.dumps(PlannedRates(rates_hz=rates_hz).model_dump()) if rates_hz else b""

    def view(self) -> bytes:
        """Return the view of the fleet, as JSON; see ``agents.host.fleet.FleetView``."""
        now = self._clock()
        self._plan()
        agents = [
            {"heard": heard, "status": orjson.Fragment(status)} for heard, status in self.statuses.heard(now)
        ]
        plans = {service: plan.model_dump() for service, plan in self._plans.plans.items()}
        return orjson.dumps({"now": now, "rules": self.rules.version, "agents": agents, "plans": plans})

    def _load(self) -> HostRules:
        rules = read_fleet_rules(self._path)
        self._plans.follow(parse_fleet_config(rules.content, str(self._path)), str(self._path))
        return rules

    def _plan(self) -> None:
        """Plan rates from time to time, from the statuses of hosts that are not silent."""
        now = self._clock()
        if self._plans.is_due(now):
            heard = self.statuses.heard(now)
            self._plans.update((status for at, status in heard if now - at <= SILENT_S), now)


def add_fleet_routes(app: web.Application, fleet: AgentFleet, intake: RequestIntake) -> None:
    """Serve rules and statuses to every client with a token of the gateway, whatever its services."""

    async def rules(sent: web.Request) -> web.Response:
        headers = {"ETag": fleet.rules.etag, "Cache-Control": "no-cache"}
        etags = {tag.strip().removeprefix("W/") for tag in sent.headers.get("If-None-Match", "").split(",")}
        if fleet.rules.etag in etags:
            return web.Response(status=304, headers=headers)
        return web.Response(body=fleet.rules.content, content_type="application/yaml", headers=headers)

    async def status(sent: web.Request) -> web.Response:
        planned = fleet.take(await _status_body(sent))
        return web.Response(body=planned, content_type=JSON) if planned else web.Response(status=204)

    async def agents(_: web.Request) -> web.Response:
        return web.Response(body=fleet.view(), content_type=JSON)

    app.router.add_get(RULES_PATH, _guarded(rules, intake))
    app.router.add_post(STATUS_PATH, _guarded(status, intake))
    app.router.add_get(AGENTS_PATH, _guarded(agents, intake))


_Handler = Callable[[web.Request], Awaitable[web.Response]]


def _guarded(handler: _Handler, intake: RequestIntake) -> _Handler:
    """Check the token, and answer refusals."""

    async def handle(sent: web.Request) -> web.Response:
        try:
            intake.identify(sent.headers.get("Authorization"))
            return await handler(sent)
        except Refusal as refusal:
            headers = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else None
            return web.Response(status=refusal.status, text=refusal.text + "\n", headers=headers)

    return handle


async def _status_body(sent: web.Request) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in sent.content.iter_any():
                body += piece
                if len(body) > MAX_STATUS_BYTES:
                    raise Refusal(413, "too_large", f"larger than {MAX_STATUS_BYTES} bytes")
    except (ConnectionError, ClientPayloadError):
        raise Refusal(400, "broken_off", "the body broke off") from None
    except TimeoutError:
        raise Refusal(408, "slow", "the body did not come in time") from None
    return bytes(body)
