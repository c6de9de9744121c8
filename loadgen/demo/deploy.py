"""Deployment of a commit as by an operator: start it beside the old release, hand over, stop the old one."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path

from loadgen.demo.comparison import DemoDeployment
from loadgen.demo.driver import LoadDriver, ServiceFailed, wait_until_healthy
from loadgen.engines.kafka.probe import free_ports
from loadgen.target.repository import Revision, check_out
from pipeline.model.clock import Clock
from pipeline.processes import Group, Process, smidgen_command

SERVICE = "shop"
HZ = 199
"""Samples a second: a prime near 200, so that nothing periodic falls into step with it."""

_HEALTHY_S = 30.0
_AGENT_END_S = 10.0


@dataclass(frozen=True, slots=True)
class RunningRelease:
    """A running revision."""

    revision: Revision
    base: str  # http://host:port
    service: Process
    agent: Process


class Deployer:
    """Keeper of exactly one release of the shop in service, with an agent that samples it."""

    def __init__(
        self, processes: Group, repository: Path, driver: LoadDriver, broker: str, clock: Clock
    ) -> None:
        self._processes = processes
        self._repository = repository
        self._driver = driver
        self._connection = ("--broker", broker)
        self._clock = clock
        self._current: RunningRelease | None = None

    async def prepare(self, revision: Revision) -> RunningRelease:
        """Start a revision beside the one in service, warm it up, and start an agent that samples it.

        Raises:
            ChildFailed: a process failed.
            ServiceFailed: the new release does not answer.
        """
        await asyncio.to_thread(check_out, self._repository, revision.sha)
        (port,) = free_ports("127.0.0.1", 1)
        base = f"http://127.0.0.1:{port}"
        service = await self._processes.start(
            f"shop-{revision.short}",
            [sys.executable, "-m", "shop", "--port", str(port)],
            folder=self._repository,
        )
        await self._answers(base, revision)
        agent = await self._start_agent(service.pid, revision)
        return RunningRelease(revision, base, service, agent)

    async def take_over(self, release: RunningRelease) -> DemoDeployment:
        """Announce a prepared revision, move the traffic to it without a gap, and retire its predecessor."""
        revision = release.revision
        await self._processes.run(
            "changes", smidgen_command("changes", *self._change(revision), *self._connection)
        )
        previous, self._current = self._current, release
        await self._driver.switch(release.base)
        deployment = DemoDeployment(
            sha=revision.sha, title=revision.commit.title, kind=revision.commit.kind, time=self._clock()
        )
        if previous:
            await self._retire(previous)
        return deployment

    async def _answers(self, base: str, revision: Revision) -> None:
        try:
            async with asyncio.timeout(_HEALTHY_S):
                await wait_until_healthy(base)
        except TimeoutError:
            raise ServiceFailed(
                f"the shop at {revision.short} did not answer its health check within {_HEALTHY_S:g} s"
            ) from None
        await self._driver.warm_up(base)

    async def _start_agent(self, pid: int, revision: Revision) -> Process:
        sampling = ("--pid", str(pid), "--hz", str(HZ), "--interval", "1s", "--release", revision.sha)
        command = smidgen_command("agent", "run", "--service", SERVICE, *sampling, *self._connection)
        return await self._processes.start(f"agent-{revision.short}", command)

    def _change(self, revision: Revision) -> tuple[str, ...]:
        source = ("--repo", str(self._repository), "--rev", revision.sha)
        return (*source, "--service", SERVICE, "--time", "now")

    async def _retire(self, release: RunningRelease) -> None:
        """Stop a release in order; its agent ends once there is nothing left to sample."""
        release.agent.may_end = True
        await self._processes.stop(release.service)
        await release.agent.wait(_AGENT_END_S)
        await self._processes.stop(release.agent)
