"""``smidgen agent webhooks``: changes from webhooks of forges and flag services."""

from __future__ import annotations

import asyncio
import os
from contextlib import ExitStack, closing
from pathlib import Path

import click

from agents.publishing.broker import check_broker, connect, quiet_client
from agents.webhooks import load_service_map, serve
from pipeline.commands.options import settings_options
from pipeline.commands.request import option, takes
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
@takes
def webhooks(
    service_map: Path = option(
        help="YAML file of the services of repositories, branches and gates, and of where secrets are."
    ),
    listen: tuple[str, int] = option(
        "127.0.0.1:8087",
        parse=address_of,
        metavar="HOST:PORT",
        help="Address to listen on; port 0 takes a free one.",
    ),
    settings: Settings = settings_options("broker", "topics", "idempotent_producer", "log_level", "store"),
) -> None:
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
