"""``smidgen agent host``: one agent for all processes of a host that rules take."""

from __future__ import annotations

import socket
from pathlib import Path

import click

from agents.commands.options import host_option, metrics_option
from agents.publishing.broker import quiet_client
from pipeline.commands.options import settings_options
from pipeline.commands.request import option, takes
from pipeline.commands.terminal import print_lines
from pipeline.kafka import bootstrap_servers
from pipeline.model.clock import system_clock
from pipeline.settings.config import Settings

_EXAMPLES = """\b
Examples:
  smidgen agent host --rules host.yaml --list
  smidgen agent host --rules host.yaml
  smidgen agent host --rules http://gateway:4040 --spool /var/lib/smidgen
"""


def _rules(text: str) -> Path | str:
    """Read the source of rules: a path, or the address of a gateway."""
    from agents.host.fleet.client import check_url, is_url

    return check_url(text) if is_url(text) else Path(text)


@click.command(epilog=_EXAMPLES)
@takes
def host(
    rules: Path | str = option(
        parse=_rules,
        metavar="FILE|URL",
        help="YAML file of the processes to sample and their services; or address http://HOST:PORT of a "
        "gateway "
        "that serves a fleet's rules (docs/fleet.md).",
    ),
    listed: bool = option(flag="--list", help="Show which processes would be sampled now, and end."),
    metrics: tuple[str, int] | None = metrics_option,
    spool: Path | None = option(
        metavar="FOLDER",
        help="Folder for messages that do not fit into memory, instead of spool in the rules.",
    ),
    host: str | None = host_option,
    settings: Settings = settings_options("broker", "topics", "idempotent_producer", "log_level"),
) -> int:
    """Sample all processes of this host that rules take, until Ctrl-C.

    Processes are followed as they start and end. SIGHUP has the rules read again; a gateway is asked for
    other ones every 30 s, and its rules are kept while it is away. If the broker is away, messages wait in
    memory and then in the spool. Exit code: 0 when the agent was asked to end and lost nothing, 1 when
    messages were dropped, 2 when a setting is wrong.
    """
    from agents.host import HostOptions, list_processes, load_rules, run_host_agent
    from agents.host.fleet import FleetClient
    from agents.host.proc import ProcReader

    origin = rules if isinstance(rules, Path) else FleetClient(rules, settings.token)
    if listed:
        print_lines(list_processes(load_rules(origin), ProcReader()))
        return 0
    quiet_client(settings)
    bootstrap_servers(settings.broker)
    options = HostOptions(origin, host or socket.gethostname(), metrics, spool)
    return run_host_agent(options, settings, settings.read_topics(), clock=system_clock)
