"""``smidgen agent host``: one agent for all processes of a host that rules take."""

from __future__ import annotations

import socket
from pathlib import Path

import click

from agents.broker import quiet_client
from agents.options import address_of, checked_by, host_option
from pipeline.clock import system_clock
from pipeline.commands.options import settings_options
from pipeline.config import Settings
from pipeline.kafka import bootstrap_servers
from pipeline.terminal import escape_controls

_EXAMPLES = """\b
Examples:
  smidgen agent host --rules host.yaml --list
  smidgen agent host --rules host.yaml
"""


@click.command(epilog=_EXAMPLES)
@click.option(
    "--rules",
    "file",
    required=True,
    type=click.Path(path_type=Path),
    help="YAML file: which processes are sampled, for which service, and how (docs/agent.md).",
)
@click.option("--list", "listed", is_flag=True, help="Show what would be sampled now, and end.")
@click.option(
    "--metrics",
    metavar="HOST:PORT",
    callback=checked_by(address_of),
    help="Serve numbers for Prometheus there (GET /metrics); port 0 takes a free one.",
)
@host_option
@settings_options("broker", "topics", "idempotent_producer", "log_level")
def host(
    settings: Settings, file: Path, listed: bool, metrics: tuple[str, int] | None, host: str | None
) -> int:
    """Sample all processes of this host that rules take, until Ctrl-C.

    Processes are followed as they start and end. SIGHUP has the rules read again. If the broker is away,
    messages wait in memory and then in the spool. Exit code: 0 when the agent was asked to end and lost
    nothing, 1 when messages were dropped, 2 when a setting is wrong.
    """
    from agents.host import HostOptions, list_processes, load_host_config, run_host_agent
    from agents.host.proc import ProcReader

    if listed:
        for line in list_processes(load_host_config(file), ProcReader()):
            click.echo(escape_controls(line))
        return 0
    quiet_client(settings)
    bootstrap_servers(settings.broker)
    options = HostOptions(file, host or socket.gethostname(), metrics)
    return run_host_agent(options, settings, settings.read_topics(), clock=system_clock)
