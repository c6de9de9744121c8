"""The failures that Smidgen distinguishes; nothing else is ever caught."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class SmidgenError(Exception):
    """Base of every failure a person can act on; the command line prints it as one line and exits with 2."""


class ConfigError(SmidgenError):
    """A setting, a file named by a setting, or a command's argument is wrong; the text names the key."""


class InvalidMessage(SmidgenError):
    """A message cannot be used and never will be: it goes to dead-letters with this reason."""


class StoreUnavailable(SmidgenError):
    """The store did not answer or refused for now: the same call is repeated until it succeeds."""


class QueryRefused(StoreUnavailable):
    """The store answers, but one query takes too much or reads what is damaged: it may never succeed."""


class BrokerUnavailable(SmidgenError):
    """The broker cannot be reached."""


class MessagesSkipped(SmidgenError):
    """The Kafka client left out messages that it had fetched; they are read when the worker starts again."""


@contextmanager
def file_errors(what: object) -> Iterator[None]:
    """Name what the operating system failed at, such as a path.

    Raises:
        ConfigError: ``what``, and the system's reason, in place of an OSError.
    """
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{what}: {error.strerror or error}") from None
