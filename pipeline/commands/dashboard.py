"""``smidgen dashboard``: regressions, services and flame graphs in a browser, and the HTTP API."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Any

import click

from pipeline.access import is_loopback
from pipeline.codec.inputs import encode_feedback
from pipeline.commands.options import settings_options
from pipeline.config import Settings
from pipeline.errors import ConfigError
from pipeline.model import Outgoing, Silence, Verdict

if TYPE_CHECKING:
    from pipeline.dashboard import Login, Oidc

_EXAMPLES = """\b
Examples:
  smidgen dashboard --store http://localhost:8123 --broker localhost:9092
  smidgen dashboard --port 0                       a free port; the first line printed is the address
  smidgen dashboard --host 0.0.0.0 --user-header X-Forwarded-User --trusted-proxy 10.0.0.0/8 --triage ada
  curl -H "Authorization: Bearer $TOKEN" localhost:8088/api/v1/regressions?service=shop
"""

SAY_S = 5.0
"""How long a verdict may take to be on its topic."""


@click.command(epilog=_EXAMPLES)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8088, show_default=True, help="0: a free one.")
@click.option(
    "--user-header", default="", metavar="NAME", help="Header in which a reverse proxy names the user."
)
@click.option(
    "--trusted-proxy",
    "proxies",
    multiple=True,
    metavar="NETWORK",
    help="Whose --user-header is believed; may be repeated.",
)
@click.option(
    "--triage", multiple=True, metavar="USER", help="Who may answer; * is everybody; others only read."
)
@click.option("--oidc-issuer", default="", metavar="URL", help="Provider at which people log in.")
@click.option("--oidc-client", default="", metavar="ID", help="As what it knows this dashboard.")
@click.option(
    "--oidc-groups-claim", default="groups", show_default=True, metavar="CLAIM", help="Names people's groups."
)
@click.option("--public-url", default="", metavar="URL", help="Under which people reach this dashboard.")
@click.option(
    "--triage-group", multiple=True, metavar="GROUP", help="Whose members may answer; may be repeated."
)
@click.option(
    "--read-group", multiple=True, metavar="GROUP", help="Whose members may read; by default who logs in."
)
@click.option(
    "--open-badges", is_flag=True, help="Badges of services for everybody who reaches it, without a login."
)
@click.option(
    "--diff-url", default="", metavar="URL", help="Where a diff is to be seen, with {change} and {service}."
)
@settings_options("broker", "store", "topics", "workloads", "group_prefix", "names", "idempotent_producer")
def dashboard(
    settings: Settings,
    host: str,
    port: int,
    user_header: str,
    proxies: tuple[str, ...],
    triage: tuple[str, ...],
    open_badges: bool,
    diff_url: str,
    **oidc: Any,
) -> None:
    """Serve the dashboard until Ctrl-C: what got slower, since when, by which change, and what you say of it.

    Regressions are a list to work through (j and k move, Enter opens, x chooses), each with its series, flame
    graphs, suspects and the story of every step; a click answers one. Services show what is detectable in
    their traffic, and every candidate that was dropped. /api/v1/openapi.json describes it for programs.

    Without a login it listens on this machine alone. Behind a reverse proxy that logs people in, name its
    header and its address, or let people log in at an OpenID provider: --oidc-issuer, --oidc-client and
    --public-url, whose /login/callback is registered there, and oidc_secret_file. Programs
    send the bearer token of http_token_file.
    """
    from pipeline.dashboard import Login, read_networks

    if user_header and not proxies:
        raise click.UsageError("--user-header needs --trusted-proxy: anybody can send a header")
    sessions = bool(oidc["oidc_issuer"])
    if sessions and user_header:
        raise click.UsageError("--user-header and --oidc-issuer: one of them knows who somebody is")
    for name in ("oidc_client", "public_url", "triage_group", "read_group"):
        if oidc[name] and not sessions:
            raise click.UsageError(f"--{name.replace('_', '-')} needs --oidc-issuer")
    if not user_header and not sessions and not is_loopback(host):
        raise ConfigError(
            f"--host: {host} can be reached from other machines: give --user-header or --oidc-issuer too"
        )
    login = Login(
        user_header, read_networks(proxies), frozenset(triage), settings.token, sessions, open_badges
    )
    asyncio.run(_serve(settings, login, _logging_in(settings, triage, oidc), host, port, diff_url))


def _logging_in(settings: Settings, triage: tuple[str, ...], given: Mapping[str, Any]) -> Oidc | None:
    from pipeline.dashboard import Oidc, Provider, Roles, Sessions

    if not given["oidc_issuer"]:
        return None
    secret = settings.oidc_secret.get_secret_value() if settings.oidc_secret else ""
    provider = Provider(
        issuer=given["oidc_issuer"],
        client=given["oidc_client"],
        public_url=given["public_url"],
        secret=secret,
        groups_claim=given["oidc_groups_claim"],
    )
    groups = (frozenset(given[name]) for name in ("triage_group", "read_group"))
    return Oidc(provider, Sessions(Roles(frozenset(triage), *groups), secret))


async def _serve(
    settings: Settings, login: Login, oidc: Oidc | None, host: str, port: int, diff_url: str
) -> None:
    # Loaded here: plotly takes half a second, which --help need not wait for.
    from pipeline.codec.names import read_namings
    from pipeline.commands.doctor import diagnose
    from pipeline.dashboard import Sources, create_app, serve
    from pipeline.stages.gather.symbols import SymbolStore
    from pipeline.storage.connect import open_store
    from pipeline.workloads import known_workloads

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    with (
        closing(open_store(settings.store, existing=True)) as store,
        contextlib.suppress(asyncio.CancelledError),
    ):
        async with _voice(settings) as voice:
            sources = Sources(
                store=SymbolStore(store, read_namings(settings.names)),
                workloads=known_workloads(settings.workloads),
                say=voice.say,
                diagnose=lambda: diagnose(settings),
                diff_url=diff_url,
            )
            await serve(create_app(sources, login, oidc=oidc), host, port, click.echo)


class _Voice:
    """Publishes answers; it connects when the first one is said."""

    def __init__(self, settings: Settings) -> None:
        from pipeline.kafka import Broker, Publisher

        topics = settings.read_topics()
        self._publisher = Publisher(Broker.of(settings), topics, idempotent=settings.idempotent_producer)

    async def say(self, said: Verdict | Silence) -> None:
        """Put what somebody says on its topic.

        Raises:
            ConfigError: the broker does not take it within SAY_S.
        """
        message = Outgoing("feedback", said.service, encode_feedback(said))
        give_up = asyncio.Event()
        asyncio.get_running_loop().call_later(SAY_S, give_up.set)
        if not await self._publisher.publish([message], give_up):
            raise ConfigError(f"not said: the broker did not take it within {SAY_S:g} s")

    async def stop(self) -> None:
        """Disconnect."""
        await self._publisher.stop()


@asynccontextmanager
async def _voice(settings: Settings) -> AsyncIterator[_Voice]:
    voice = _Voice(settings)
    try:
        yield voice
    finally:
        await voice.stop()
