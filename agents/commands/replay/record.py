"""``smidgen replay record``: a reverse proxy that records."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from agents.commands.options import checked_by
from agents.commands.replay.options import listen_option, side_url
from pipeline.commands.options import Duration, FiniteRange
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
@listen_option
@click.option("--upstream", required=True, metavar="URL", callback=checked_by(side_url), help="The service.")
@click.option(
    "--to",
    "path",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Recording to add to; gzip if it ends in .gz.",
)
@click.option("--service", default="", metavar="NAME", help="Name of the service, for the head of the file.")
@click.option(
    "--share",
    type=FiniteRange(min=0, min_open=True, max=1),
    default=1.0,
    show_default=True,
    help="Share of requests, or of sessions.",
)
@click.option(
    "--most",
    type=click.IntRange(min=0),
    default=0,
    help="Most requests in each --interval, drawn evenly; 0 is no bound.",
)
@click.option(
    "--interval", "interval_s", type=Duration(), default="1m", show_default=True, metavar="DURATION"
)
@click.option(
    "--session",
    default="",
    metavar="cookie:NAME|header:NAME",
    callback=checked_by(_session),
    help="Requests with the same value are recorded together or not at all.",
)
@click.option(
    "--redact-header",
    "redact_headers",
    multiple=True,
    metavar="NAME",
    help="Besides Authorization, Cookie, Set-Cookie, Proxy-Authorization and X-API-Key. May be repeated.",
)
@click.option(
    "--redact-field",
    "redact_fields",
    multiple=True,
    metavar="NAME",
    help="Query parameter or field of a body, besides passwords and the like. May be repeated.",
)
@click.option(
    "--key-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Key of the hash of what is redacted, for recordings that belong together (default: drawn).",
)
@click.option(
    "--max-body",
    "max_body_bytes",
    default="1MiB",
    show_default=True,
    metavar="SIZE",
    callback=checked_by(parse_size_bytes),
    help="Requests with larger bodies pass, unrecorded.",
)
@click.option(
    "--max-file",
    "max_file_bytes",
    default="1GiB",
    show_default=True,
    metavar="SIZE",
    callback=checked_by(parse_size_bytes),
    help="Then nothing more is recorded.",
)
def record(
    listen: tuple[str, int],
    upstream: str,
    path: Path,
    service: str,
    share: float,
    most: int,
    interval_s: float,
    session: str,
    redact_headers: tuple[str, ...],
    redact_fields: tuple[str, ...],
    key_file: Path | None,
    max_body_bytes: int,
    max_file_bytes: int,
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
