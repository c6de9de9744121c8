"""List of the processes that the agent would sample now, with rules; and reasons not to sample others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agents.host.choice import choose
from agents.host.discovery import Discovery, MatchedProcess, Passed
from agents.host.proc import ProcReader
from agents.host.rules import REASONS, How
from agents.host.rules_file import HostConfig

COMMAND = 60
"""Characters of a command line that are shown."""


def list_processes(config: HostConfig, reader: ProcReader) -> Iterator[str]:
    """Yield one line for each process, those that would be sampled first."""
    scan = Discovery(reader, config.rules).scan()
    chosen, waiting = choose(scan.matched, frozenset(), config.processes)
    yield f"{len(chosen)} processes would be sampled"
    yield from _lines(chosen)
    if waiting:
        yield f"{len(waiting)} would wait: more than {config.processes} match (processes)"
        yield from _lines(waiting)
    if scan.covered:
        yield f"{scan.covered} would be sampled with a process that started them (subprocesses)"
    yield f"{len(scan.passed)} would not be sampled"
    yield from (_passed(process) for process in scan.passed)


def _lines(processes: Sequence[MatchedProcess]) -> Iterator[str]:
    for process in processes:
        target = process.target
        identity = target.identity
        labels = {"release": identity.release, **dict(identity.labels), "endpoint": target.endpoint}
        more = "".join(f" {name}={value}" for name, value in labels.items() if value)
        yield (
            f"  {process.pid} rule {target.rule}: {identity.service}{more}, {target.how.kernel} at "
            f"{_rate(target.how)}, {process.cpu_share:.2f} CPUs: {process.command[:COMMAND]}"
        )


def _rate(how: How) -> str:
    return "an adaptive rate" if how.adaptive else "a planned rate" if how.planned else f"{how.rate_hz:g} Hz"


def _passed(process: Passed) -> str:
    decision = process.decision
    why = REASONS[decision.reason] if decision.reason else ""
    by = f"rule {decision.rule}: " if decision.rule else ""
    shown = f" ({decision.service!r})" if decision.service else ""
    return f"  {process.pid} {by}{why}{shown}: {process.command[:COMMAND]}"
