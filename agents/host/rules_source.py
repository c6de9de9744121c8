"""Source of a host agent's rules: a file of the host, or a gateway that serves a fleet's rules."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from agents.host.fleet.client import FleetClient, GatewayUnavailable
from agents.host.fleet.rules import HostRules
from agents.host.fleet.status import MOST_KERNELS, MOST_SERVICES, AgentStatus
from agents.host.numbers import AgentState
from agents.host.rules_file import HostConfig, load_host_config, parse_fleet_config
from pipeline import __version__
from pipeline.model.errors import ConfigError
from pipeline.processes import TaskSupervisor

log = logging.getLogger(__name__)

ASK_S = 30.0
"""Seconds between two requests for new rules."""

FIRST_S = 5.0
"""Seconds between two requests until there are rules."""

CLOSE_S = 1.0


class RulesSource(Protocol):
    """Returns rules at the start and whenever they change. No call blocks."""

    def start(self, wake: Callable[[], None]) -> None:
        """Begin to look for rules; ``wake`` is called, from any thread, when there are new ones."""

    def changed(self) -> HostConfig | None:
        """Return rules that came since the last call, or None."""

    def planned(self) -> Mapping[str, float]:
        """Return rates of services that were planned since the last call."""

    def ask(self) -> None:
        """Look for other rules now."""

    def report(self, state: AgentState) -> None:
        """Take the state of the agent."""

    def close(self) -> None:
        """Look no more."""


class FileRules:
    """Rules of a file, which is read again on request.

    Raises:
        ConfigError: the file is wrong at the start; later errors are only logged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._next: HostConfig | None = load_host_config(path)

    def start(self, wake: Callable[[], None]) -> None:
        """Do nothing: the rules were read at the start."""

    def changed(self) -> HostConfig | None:
        """Return the rules that were read since the last call."""
        config, self._next = self._next, None
        return config

    def planned(self) -> Mapping[str, float]:
        """Return none: a file does not plan."""
        return {}

    def ask(self) -> None:
        """Read the file; a wrong one leaves the rules as they were."""
        try:
            self._next = load_host_config(self._path)
        except ConfigError as error:
            log.error("the rules stay as they were: %s", error)

    def report(self, state: AgentState) -> None:
        """Do nothing: no gateway receives the state."""

    def close(self) -> None:
        """Do nothing."""


class GatewayRules:
    """Rules of a fleet. A thread asks a gateway for them, and sends it the agent's status.

    The rules stay as they were while the gateway is away, and if new ones are wrong.
    """

    def __init__(
        self,
        client: FleetClient,
        host: str,
        *,
        ask_s: float = ASK_S,
        first_s: float = FIRST_S,
        tasks: TaskSupervisor | None = None,
    ) -> None:
        self.tasks = tasks or TaskSupervisor()
        self._client = client
        self._host = host
        self._ask_s = ask_s
        self._first_s = first_s
        self._lock = threading.Lock()
        self._due = threading.Event()
        self._closing = threading.Event()
        self._wake: Callable[[], None] = lambda: None
        self._next: HostConfig | None = None
        self._planned: Mapping[str, float] = {}
        self._status: AgentStatus | None = None
        self._known = ""  # version that came last
        self._followed = ""  # last version that was valid
        self._away_since: float | None = None
        self._thread: threading.Thread | None = None

    def start(self, wake: Callable[[], None]) -> None:
        """Begin to ask."""
        self._wake = wake
        self._thread = self.tasks.run_thread("fleet rules", self._run, self._closing)

    def changed(self) -> HostConfig | None:
        """Return the rules that came since the last call."""
        with self._lock:
            config, self._next = self._next, None
        return config

    def planned(self) -> Mapping[str, float]:
        """Return the rates that came since the last call."""
        with self._lock:
            planned, self._planned = self._planned, {}
        return planned

    def ask(self) -> None:
        """Ask now."""
        self._due.set()

    def report(self, state: AgentState) -> None:
        """Send a status; of several that wait, only the last is sent."""
        self._status = status_of(self._host, self._followed, state)
        self._due.set()

    def close(self) -> None:
        """Ask no more; a request that is under way is waited for briefly."""
        self._closing.set()
        self._due.set()
        if self._thread:
            self._thread.join(CLOSE_S)

    def _run(self) -> None:
        while not self._closing.is_set():
            self._due.clear()
            try:
                self._fetch()
                self._send()
            except GatewayUnavailable as error:
                self._note_outage(error)
            else:
                self._note_return()
            self._due.wait(self._ask_s if self._followed else self._first_s)

    def _fetch(self) -> None:
        rules = self._client.rules(self._known)
        if rules is not None:
            self._take(rules)
            self._known = rules.version

    def _take(self, rules: HostRules) -> None:
        try:
            config = parse_fleet_config(rules.content, self._client.url)
        except ConfigError as error:
            log.error("the rules stay as they were: %s", error)
            return
        with self._lock:
            self._next = config
            self._followed = rules.version
        self._wake()

    def _send(self) -> None:
        status = self._status
        if status is not None:
            rates_hz = self._client.report(status).rates_hz
            if rates_hz:
                with self._lock:
                    self._planned = {**self._planned, **rates_hz}
                self._wake()
            if self._status is status:
                self._status = None

    def _note_outage(self, error: GatewayUnavailable) -> None:
        if self._away_since is None:
            self._away_since = time.monotonic()
            until = "the rules stay as they were" if self._followed else "waiting for its rules"
            log.warning("%s; %s", error, until)

    def _note_return(self) -> None:
        if self._away_since is not None:
            log.info("%s answers again, after %.0f s", self._client.url, time.monotonic() - self._away_since)
            self._away_since = None


def load_rules(origin: Path | FleetClient) -> HostConfig:
    """Return the rules of a file, or those that a gateway serves now.

    Raises:
        ConfigError: they are wrong.
        GatewayUnavailable: the gateway does not answer.
    """
    if isinstance(origin, Path):
        return load_host_config(origin)
    rules = origin.rules() or HostRules(b"")
    return parse_fleet_config(rules.content, origin.url)


def status_of(host: str, rules: str, state: AgentState) -> AgentStatus:
    """Return a state as the status of a host that follows a version of rules."""
    rates = sorted(state.rates_hz.items())[:MOST_SERVICES]
    planned = sorted(state.planned.items())[:MOST_SERVICES]
    kernels = sorted(state.kernels.items())[:MOST_KERNELS]
    return AgentStatus.model_validate(
        {
            "host": host,
            "version": __version__,
            "rules": rules,
            "processes": dict(state.processes),
            "rates_hz": dict(rates),
            "planned": dict(planned),
            "kernels": dict(kernels),
            "cost_share": state.cost_share,
            "budget": state.budget,
            "published": state.delivery.published.messages,
            "dropped": state.delivery.dropped.messages,
            "waiting": state.delivery.unsent.messages,
            "spooled_bytes": state.spooled_bytes,
        }
    )
