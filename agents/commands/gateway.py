"""``smidgen gateway``: takes profiles and metrics that agents push, and fetches those that services serve."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.commands.options import settings_options
from pipeline.commands.request import FOLDER, option, takes
from pipeline.files.values import address_of
from pipeline.model.units import parse_size_bytes
from pipeline.settings.config import Settings

if TYPE_CHECKING:
    from agents.gateway.intake import Rules

LEAST_SPOOL_BYTES = 64 * 1024**2

_EXAMPLES = """\b
Examples:
  smidgen gateway
  smidgen gateway --listen 0.0.0.0:4040 --rules gateway.yaml
  smidgen gateway --scrape targets.yaml
  smidgen gateway --agents fleet.yaml
  smidgen gateway --spool gateway-spool --spool-size 4GiB
"""


def _spool_bytes(text: str) -> int:
    """Read a size; refuse one too small for the largest messages."""
    size = parse_size_bytes(text)
    if size < LEAST_SPOOL_BYTES:
        raise ValueError(f"should be at least {LEAST_SPOOL_BYTES // 1024**2}MiB: one message may be 16MiB")
    return size


@click.command(epilog=_EXAMPLES)
@takes
def gateway(
    listen: tuple[str, int] = option(
        "127.0.0.1:4040",
        parse=address_of,
        metavar="HOST:PORT",
        help="Address to listen on; port 0 takes a free one.",
    ),
    grpc: tuple[str, int] | None = option(
        parse=address_of,
        metavar="HOST:PORT",
        help="Address to listen on for gRPC: OTLP profiles and Parca's WriteRaw (needs grpcio).",
    ),
    rules_file: Path | None = option(
        flag="--rules", help="YAML file: clients, names of labels, rates (docs/gateway.md)."
    ),
    targets_file: Path | None = option(
        flag="--scrape",
        help="YAML file of services whose profiles or metrics are fetched; read again on SIGHUP.",
    ),
    agents_file: Path | None = option(
        flag="--agents",
        help="YAML file of rules for host agents (smidgen agent host --rules URL); read again on SIGHUP.",
    ),
    metrics_file: Path | None = option(
        flag="--metrics",
        help="YAML file of the service-level metrics that are taken (docs/metrics.md).",
    ),
    buffer_bytes: int = option(
        "256MiB",
        parse=parse_size_bytes,
        metavar="SIZE",
        help="Memory for messages to the broker; when it is full, clients are asked to try again, or "
        "--spool is used.",
    ),
    spool: Path | None = option(
        kind=FOLDER,
        metavar="FOLDER",
        help="Folder for messages that do not fit into memory, and at the end for those that were not "
        "delivered.",
    ),
    spool_bytes: int = option(
        "1GiB",
        flag="--spool-size",
        parse=_spool_bytes,
        metavar="SIZE",
        help="Most bytes of messages that wait, with --spool.",
    ),
    settings: Settings = settings_options(
        "broker", "topics", "workloads", "idempotent_producer", "log_level"
    ),
) -> int:
    """Take profiles and metrics that existing agents push, and publish them, until Ctrl-C.

    Pyroscope (POST /ingest, /push.v1.PusherService/Push), OpenTelemetry (POST /v1development/profiles),
    Parca (POST /profiles/writeraw), Datadog (POST /profiling/v1/input), Smidgen's sampler inside Python
    (POST /profiles), plain files (POST /pprof?service=NAME); metrics of Prometheus (POST /api/v1/write) and
    OpenTelemetry (POST /v1/metrics). The first line printed is the address; GET /healthz says ok. With
    http_token_file, or clients in --rules, a token is asked for: as a bearer token, or as a user's password.
    With --scrape, profiles of Go services and pages of metrics are fetched as well. With --agents, host
    agents follow a file's rules, at rates that let the --workloads see a threshold, and smidgen agent list
    shows how it is with them.
    """
    from agents.gateway.config import load_rules
    from agents.gateway.fleet import Fleet
    from agents.gateway.service import Endpoint, SpoolOptions, serve
    from agents.gateway.targets import load_targets
    from agents.metrics import load_metric_map
    from agents.publishing.broker import check_broker, connect, quiet_client
    from agents.sampling.agent import OVERHEAD_BYTES
    from pipeline.model.clock import system_clock
    from pipeline.settings.workloads import load_workloads

    quiet_client(settings)
    topics = settings.read_topics()
    size = topics["profiles"].max_message_bytes - OVERHEAD_BYTES
    rules = load_rules(rules_file, settings.token, max_message_bytes=size)
    if targets_file:
        load_targets(targets_file)  # before anything else is done
    fleet = None
    if agents_file:
        fleet = Fleet(agents_file, load_workloads(settings.workloads), clock=system_clock)
    metric_map = load_metric_map(metrics_file)
    for flag, address in (("--listen", listen), ("--grpc", grpc)):
        _check_reach(flag, address, rules)
    on_disk = SpoolOptions(spool, spool_bytes) if spool else None
    check_broker(settings)
    complete = asyncio.run(
        serve(
            rules,
            lambda: connect(settings, topics),
            Endpoint(
                listen,
                grpc,
                buffer_bytes,
                on_disk,
                targets_file,
                fleet,
                metric_map,
            ),
            clock=system_clock,
            ready=lambda addresses: click.echo(f"listening on {' '.join(addresses)}"),
        )
    )
    return 0 if complete else 1


def _check_reach(flag: str, address: tuple[str, int] | None, rules: Rules) -> None:
    """Refuse an address that other machines can reach without a token."""
    from pipeline.http.access import is_loopback
    from pipeline.model.errors import ConfigError

    if address and not is_loopback(address[0]) and any(client.token is None for client in rules.clients):
        raise ConfigError(
            f"{flag}: {address[0]} can be reached from other machines: "
            "set http_token_file, or clients in --rules"
        )
