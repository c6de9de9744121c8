"""``smidgen agent webhooks``: changes from webhooks of forges and flag services."""

from __future__ import annotations

import asyncio
import os
from contextlib import ExitStack, closing
from pathlib import Path

import click

from agents.commands.options import checked_by
from agents.publishing.broker import check_broker, connect, quiet_client
from agents.webhooks import load_service_map, serve
from pipeline.commands.options import settings_options
from pipeline.files.values import address_of
from pipeline.model.clock import system_clock
from pipeline.settings.config import Settings
from pipeline.storage.connect import open_store

_EXAMPLES = """\b
Examples:
  smidgen agent webhooks --service-map services.yaml
  smidgen agent webhooks --service-map services.yaml --listen 127.0.0.1:9000
"""


@click.command(epilog=_EXAMPLES)
@click.option(
    "--service-map",
    required=True,
    type=click.Path(path_type=Path),
    help="YAML file: which repository, branch and gate is which service, and where secrets are.",
)
@click.option(
    "--listen",
    default="127.0.0.1:8087",
    show_default=True,
    metavar="HOST:PORT",
    callback=checked_by(address_of),
    help="Address to listen on; port 0 takes a free one.",
)
@settings_options("broker", "topics", "idempotent_producer", "log_level", "store")
def webhooks(settings: Settings, service_map: Path, listen: tuple[str, int]) -> None:
    """Receive webhooks of GitHub (POST /github) and GitLab (POST /gitlab) until Ctrl-C.

    So do flag services: POST /launchdarkly, /unleash, /flagsmith and /openfeature make changes of flips.
    Each delivery's signature is verified. The first line printed is the address; GET /healthz says ok.
    Replies to what alerts wrote on a merge request or an issue are answers, if the service map says so, and
    so is closing an issue; with POST /jira in Jira as well.
    A webhook names files but has no diff, so modified subroutines need a local clone, see the service map.
    """
    quiet_client(settings)
    check_broker(settings)
    topics = settings.read_topics()
    services = load_service_map(service_map, os.environ)  # secrets, which are no settings
    with ExitStack() as opened:
        store = None
        if services.is_answered:
            store = opened.enter_context(closing(open_store(settings.store, existing=True)))
        asyncio.run(
            serve(
                services,
                lambda: connect(settings, topics),
                host=listen[0],
                port=listen[1],
                clock=system_clock,
                ready=lambda address: click.echo(f"listening on {address}"),
                store=store,
            )
        )
