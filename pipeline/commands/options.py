"""Flags that several commands share, and how they become Settings."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from pipeline.config import Settings, hidden, load_settings
from pipeline.logs import formatter

_FLAGS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "broker": click.option("--broker", metavar="HOST:PORT", help="Kafka bootstrap servers (SMIDGEN_BROKER)."),
    "store": click.option(
        "--store", metavar="DSN", help="ClickHouse: http(s)://…, chdb:///path (SMIDGEN_STORE)."
    ),
    "topics": click.option("--topics", type=click.Path(path_type=Path), help="Topics file (SMIDGEN_TOPICS)."),
    "workloads": click.option(
        "--workloads",
        multiple=True,
        metavar="NAME|FILE",
        help="Workload preset or file; may be repeated (SMIDGEN_WORKLOADS).",
    ),
    "window": click.option("--window", metavar="DURATION", help="Width of a gCPU window (SMIDGEN_WINDOW)."),
    "stack_window": click.option(
        "--stack-window", metavar="DURATION", help="Width of a stack window (SMIDGEN_STACK_WINDOW)."
    ),
    "batch_size": click.option(
        "--batch-size", type=int, help="Most messages in a batch (SMIDGEN_BATCH_SIZE)."
    ),
    "batch_wait": click.option("--batch-wait", metavar="DURATION", help="Longest wait for a full batch."),
    "partition_idle": click.option(
        "--partition-idle", metavar="DURATION", help="Silence after which a partition holds no scan back."
    ),
    "idempotent_producer": click.option(
        "--idempotent-producer/--no-idempotent-producer",
        default=None,
        help="Off for brokers without InitProducerId, such as the embedded one.",
    ),
    "dead_letter_limit": click.option(
        "--dead-letter-limit",
        type=float,
        metavar="SHARE",
        help="Stop once more than this share of the sources sends nothing usable; 1 never stops.",
    ),
    "drain": click.option(
        "--drain", metavar="DURATION", help="How long a batch may take once the worker is to stop."
    ),
    "health": click.option(
        "--health", metavar="HOST:PORT", help="Serve /live, /ready and /metrics there (SMIDGEN_HEALTH)."
    ),
    "log_level": click.option(
        "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="How much to log."
    ),
    "log_format": click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        help="Lines for people, or one JSON object a line.",
    ),
}


def settings_options(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add ``--config`` and the named flags to a command, which then receives ``settings: Settings``."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def wrapper(*args: Any, config: Path | None, **kwargs: Any) -> Any:
            flags = {name: kwargs.pop(name) for name in names}
            settings = load_settings(flags, file=config)
            configure_logging(settings)
            return command(*args, settings=settings, **kwargs)

        decorated: Callable[..., Any] = wrapper
        for name in reversed(names):
            decorated = _FLAGS[name](decorated)
        return click.option(
            "--config",
            type=click.Path(path_type=Path),
            help="Settings file (default: smidgen.yaml if there).",
        )(decorated)

    return decorate


def configure_logging(settings: Settings) -> None:
    """Send Smidgen's own log to stderr; libraries speak from warnings on."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Hiding(formatter(settings.log_format), settings.secrets()))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for package in ("pipeline", "agents", "loadgen"):
        logging.getLogger(package).setLevel(settings.log_level.upper())


class _Hiding(logging.Formatter):
    """Hides secrets in whatever a line says, tracebacks and the words of libraries included."""

    def __init__(self, inner: logging.Formatter, secrets: tuple[str, ...]) -> None:
        super().__init__()
        self._inner = inner
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without them."""
        return hidden(self._inner.format(record), self._secrets)
