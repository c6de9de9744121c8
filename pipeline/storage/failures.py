"""Failures of the driver: those that pass, those that a person must settle, and our mistakes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from clickhouse_connect.driver.exceptions import DatabaseError, OperationalError

from pipeline.model.errors import ConfigError, QueryRefused, StoreUnavailable

_TRANSIENT = {
    **{202: "too many queries", 203: "no free connection"},
    **{209: "socket timeout", 210: "network error", 236: "aborted"},
    **{242: "table is read only", 243: "not enough space", 252: "too many parts"},
    **{279: "all connection tries failed", 285: "too few live replicas", 319: "unknown status of insert"},
    **{286: "quorum of the insert before is awaited", 289: "replica is not in the quorum"},
    **{394: "query was cancelled", 425: "system error", 439: "cannot schedule a task"},
    **{469: "rows come too late, or the store's clocks differ"},  # the only constraint that tables have
    **{735: "query was cancelled by the client", 745: "server overloaded", 999: "keeper exception"},
}
"""ClickHouse's exception codes of failures that pass."""

_MEMORY = 241
_TOO_MUCH = {
    **{158: "too many rows", 159: "timeout exceeded", 160: "too slow", 191: "set too large"},
    **{_MEMORY: "memory limit exceeded", 307: "too many bytes", 396: "too many rows or bytes in a result"},
}
"""Codes of queries that need more than their limit at any time."""

_DAMAGED = {
    **{33: "cannot read all data", 40: "checksum does not match"},
    **{226: "no file in a data part", 246: "corrupted data"},
}
"""Codes of a damaged part on disk, as after a full disk: other queries may succeed."""

_ITS_OWN = re.compile(r"Query memory limit|\(for query\)")
"""Matches messages about the memory limit of one query; other limits are a user's or the whole server's."""

_REFUSED = (192, 193, 194, 516)
"""Unknown user, wrong password, password required, authentication failed."""

ACCESS_DENIED = 497
NO_TABLES = (60, 81)
"""Unknown table, unknown database."""

_GRANT = re.compile(r"necessary to have the grant (.+?)\. \(")
_GATEWAY = re.compile(r"HTTP status 5\d\d")  # a proxy answered instead of the server
_MAX_TEXT = 300


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Turn the driver's failures into Smidgen's; ``where`` names the store, without secrets.

    Raises:
        StoreUnavailable: the store did not answer, or refuses for now.
        QueryRefused: this query exceeds a limit, or reads damaged data.
        ConfigError: the store refuses this user, or its tables were never created.
    """
    try:
        yield
    except OperationalError as error:
        raise StoreUnavailable(f"the store at {where} does not answer: {_reason(error)}") from error
    except DatabaseError as error:
        if error.code in _TOO_MUCH and (error.code != _MEMORY or _ITS_OWN.search(str(error))):
            raise QueryRefused(f"the store at {where} refuses: {_reason(error)}") from error
        if error.code in _DAMAGED:
            raise QueryRefused(f"the store at {where} has damaged data: {_reason(error)}") from error
        if error.code in _TRANSIENT or error.code in _TOO_MUCH:
            raise StoreUnavailable(f"the store at {where} refuses for now: {_reason(error)}") from error
        if error.code is None and _GATEWAY.search(str(error)):
            raise StoreUnavailable(f"the store at {where} does not answer: {_reason(error)}") from error
        if error.code in _REFUSED:
            raise ConfigError(f"store: {where} refuses the user or its password") from error
        if error.code == ACCESS_DENIED:
            right = missing_right(error) or _reason(error)
            raise ConfigError(f"store: {where} denies the user a right: {right}") from error
        if error.code in NO_TABLES:
            raise ConfigError(f"store: {where} has no such table; run: smidgen store migrate") from error
        raise


def missing_right(error: DatabaseError) -> str:
    """Return the grant that a user lacks, in ClickHouse's words; empty if the error names none."""
    match = _GRANT.search(str(error))
    return match[1] if match else ""


def _reason(error: BaseException) -> str:
    """Return the operating system's words if it has any in the matter, else the error's own, shortened."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return " ".join(str(error).split())[:_MAX_TEXT]
