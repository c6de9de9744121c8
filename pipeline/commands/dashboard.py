"""``smidgen dashboard``: regressions, services and flame graphs in a browser, and the HTTP API."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

import click

from pipeline.commands.login_flags import LoginFlags
from pipeline.commands.options import settings_options
from pipeline.commands.request import option, takes
from pipeline.messages.inputs import encode_feedback
from pipeline.model import Outgoing, Silence, Verdict
from pipeline.model.errors import ConfigError
from pipeline.settings.config import Settings

_EXAMPLES = """\b
Examples:
  smidgen dashboard --store http://localhost:8123 --broker localhost:9092
  smidgen dashboard --port 0                       a free port; the first line printed is the address
  smidgen dashboard --host 0.0.0.0 --user-header X-Forwarded-User --trusted-proxy 10.0.0.0/8 --triage ada
  curl -H "Authorization: Bearer $TOKEN" localhost:8088/api/v1/regressions?service=shop
"""

SAY_S = 5.0
"""Longest time until a verdict is on its topic."""


@click.command(epilog=_EXAMPLES)
@takes
def dashboard(
    host: str = option("127.0.0.1", help="Address to listen on."),
    port: int = option(8088, least=0, most=65535, help="Port to listen on; 0 takes a free one."),
    *,
    flags: LoginFlags,
    diff_url: str = option("", metavar="URL", help="Address of a diff, with {change} and {service}."),
    settings: Settings = settings_options(
        *("broker", "store", "topics", "workloads", "group_prefix", "names", "idempotent_producer"),
        "source_url",
    ),
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
    flags.check(host)
    asyncio.run(_serve(settings, flags, host, port, diff_url))


async def _serve(settings: Settings, flags: LoginFlags, host: str, port: int, diff_url: str) -> None:
    # Loaded here: plotly takes half a second, which --help need not wait for.
    from pipeline.commands.doctor import diagnose
    from pipeline.settings.names import read_namings
    from pipeline.settings.workloads import known_workloads
    from pipeline.stages.gather.symbols import SymbolStore
    from pipeline.storage.connect import open_store
    from pipeline.views.dashboard import Sources, create_app, serve

    login, oidc = flags.login(settings), flags.oidc(settings)
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
                source_url=settings.source_url,
            )
            await serve(create_app(sources, login, oidc=oidc), host, port, click.echo)


class _Voice:
    """Publishes answers; it connects at the first one."""

    def __init__(self, settings: Settings) -> None:
        from pipeline.kafka import Broker, Publisher

        topics = settings.read_topics()
        self._publisher = Publisher(Broker.of(settings), topics, idempotent=settings.idempotent_producer)

    async def say(self, said: Verdict | Silence) -> None:
        """Put a verdict on its topic.

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
