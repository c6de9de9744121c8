"""``smidgen replay record``: a reverse proxy that records."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from agents.commands.replay.options import listen_option, side_url
from pipeline.commands.request import Duration, option, takes
from pipeline.model.errors import ConfigError, file_errors
from pipeline.model.units import parse_size_bytes
from pipeline.processes import stop_event

_EXAMPLES = """\b
Examples:
  smidgen replay record --listen 127.0.0.1:8081 --upstream http://127.0.0.1:8080 --to shop.jsonl.gz
  smidgen replay record --upstream http://127.0.0.1:8080 --to shop.jsonl --most 200 --session cookie:sid
"""


def _session(text: str) -> str:
    if not text:
        return text
    kind, colon, name = text.partition(":")
    if kind not in ("cookie", "header") or not colon or not name:
        raise ValueError("should be cookie:NAME or header:NAME")
    return text


@click.command(epilog=_EXAMPLES)
@takes
def record(
    listen: tuple[str, int] = listen_option,
    upstream: str = option(parse=side_url, metavar="URL", help="Address of the service."),
    path: Path = option(flag="--to", help="Recording to add to; gzip if it ends in .gz."),
    service: str = option("", metavar="NAME", help="Name of the service, for the head of the file."),
    share: float = option(1.0, above=0, most=1, help="Share of requests, or of sessions."),
    most: int = option(0, least=0, help="Most requests in each --interval, drawn evenly; 0 is no bound."),
    interval_s: float = option("1m", kind=Duration(), help="Interval of --most."),
    session: str = option(
        "",
        parse=_session,
        metavar="cookie:NAME|header:NAME",
        help="Cookie or header of a session: requests with the same value are recorded together or not at "
        "all.",
    ),
    redact_headers: tuple[str, ...] = option(
        flag="--redact-header",
        metavar="NAME",
        help="Header to redact, besides Authorization, Cookie, Set-Cookie, Proxy-Authorization and "
        "X-API-Key.",
    ),
    redact_fields: tuple[str, ...] = option(
        flag="--redact-field",
        metavar="NAME",
        help="Query parameter or field of a body to redact, besides passwords and the like.",
    ),
    key_file: Path | None = option(
        help="Key of the hash of what is redacted, for recordings that belong together (default: drawn).",
    ),
    max_body_bytes: int = option(
        "1MiB",
        parse=parse_size_bytes,
        metavar="SIZE",
        help="Largest body; requests with larger ones pass unrecorded.",
    ),
    max_file_bytes: int = option(
        "1GiB", parse=parse_size_bytes, metavar="SIZE", help="Size of the recording at which it ends."
    ),
) -> None:
    """Pass requests on to a service, and record a sample of them, until Ctrl-C.

    The first line printed is the address. Requests and answers pass unchanged, whatever becomes of the
    recording; what it could not take is counted and said at the end. Of headers and fields that may hold what
    nobody should read, a keyed hash is written. In a Python application, `smidgen.replay` has a
    middleware of ASGI and of WSGI that does the same.
    """
    from agents.experiments.replay.recorder import Recorder, RecorderConfig
    from agents.experiments.replay.redaction import FIELDS, HEADERS, Redaction
    from agents.experiments.replay.sampling import SamplingConfig

    if interval_s <= 0:
        raise ConfigError("--interval: should be more than 0")
    recorder = Recorder(
        path,
        RecorderConfig(
            service=service,
            sampling=SamplingConfig(share, most, interval_s),
            redaction=Redaction(
                _key(key_file),
                HEADERS | {name.lower() for name in redact_headers},
                FIELDS | {name.lower() for name in redact_fields},
            ),
            session=session,
            max_body_bytes=max_body_bytes,
            max_file_bytes=max_file_bytes,
        ),
    )
    try:
        asyncio.run(_serve(recorder, upstream, listen))
    finally:
        recorder.close()
    counts = recorder.counts
    lost = ", ".join(
        f"{name.replace('_', ' ')} {counts[name]:,}"
        for name in sorted(counts)
        if name not in ("seen", "recorded")
    )
    click.echo(
        f"{counts['recorded']:,} of {counts['seen']:,} requests recorded" + (f" ({lost})" if lost else ""),
        err=True,
    )


async def _serve(recorder: object, upstream: str, listen: tuple[str, int]) -> None:
    from agents.experiments.replay.proxy import make_proxy, serve
    from agents.experiments.replay.recorder import Recorder

    assert isinstance(recorder, Recorder)
    await serve(make_proxy(upstream, recorder), *listen, click.echo, stop_event())


def _key(path: Path | None) -> bytes:
    """Return a key of at most 64 bytes, the most that the hash takes."""
    import hashlib
    import secrets

    if path is None:
        return secrets.token_bytes(32)
    with file_errors(path):
        content = path.read_bytes()
    if len(content.strip()) < 16:
        raise ConfigError(f"{path}: a key should have 16 bytes at least")
    return hashlib.blake2b(content.strip()).digest()
