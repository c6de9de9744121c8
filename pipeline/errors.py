"""The failures that Smidgen tells apart; nothing else is ever caught."""

from __future__ import annotations


class SmidgenError(Exception):
    """Base of every failure a person can act on; the command line prints it as one line and exits with 2."""


class ConfigError(SmidgenError):
    """A setting, a file named by a setting, or a command's argument is wrong; the text names the key."""


class InvalidMessage(SmidgenError):
    """A message cannot be used and never will be: it goes to dead-letters with this reason."""


class StoreUnavailable(SmidgenError):
    """The store did not answer or refused for now: the same call is repeated until it succeeds."""


class BrokerUnavailable(SmidgenError):
    """The broker cannot be reached."""
