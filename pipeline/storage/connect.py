"""From a DSN to a store."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from pipeline.model.errors import ConfigError
from pipeline.settings.config import redact
from pipeline.settings.extras import require
from pipeline.storage.layout import TableLayout

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

    from pipeline.storage.clickhouse import ClickHouseStore

_DEFAULT_DATABASE = "default"
_HTTP_OPTIONS = frozenset(
    {
        *("verify", "ca_cert", "client_cert", "client_cert_key", "server_host_name"),
        *("compress", "connect_timeout", "send_receive_timeout"),
    }
)
_LAYOUT_OPTIONS = frozenset({"cluster", "replicated"})
_TIMEOUTS = {"connect_timeout": 10, "send_receive_timeout": 120}

_ANSWER_SHARE = 0.9
"""Of the time for which the driver waits: after it the server itself ends a query, and says why."""


def open_store(dsn: str, *, existing: bool = False) -> ClickHouseStore:
    """Connect to a store, which is the caller's to migrate and to close.

    ``http(s)://[user[:password]@]host[:port][/database][?option=value]`` is a ClickHouse server, where
    options are those of clickhouse-connect for TLS (verify, ca_cert, client_cert, client_cert_key,
    server_host_name), compress, connect_timeout and send_receive_timeout; ``cluster=NAME`` and
    ``replicated=1`` say how tables are made (``TableLayout``). ``chdb:///path`` is a folder and
    ``chdb://memory`` nothing but memory, for this process alone and one path at a time. The database, if
    it is not ``default``, is made by ``migrate``. A folder is made where there is none, unless what is there
    is only to be read, ``existing``.

    Raises:
        ConfigError: the DSN is wrong, there is no such folder, its user is refused, or chDB is not installed
            or cannot open the path.
        StoreUnavailable: nothing answers there.
    """
    client = open_client(dsn, existing=existing)
    # Loaded here: commands that need no store start without the driver.
    from pipeline.storage.clickhouse import ClickHouseStore

    return ClickHouseStore(client, redact(dsn), _layout(_options(urlsplit(dsn))))


def open_client(dsn: str, *, existing: bool = False) -> Client:
    """Connect the driver to the database of a store; see ``open_store``."""
    where = redact(dsn)
    try:
        parts = urlsplit(dsn)
        options = _options(parts)
        layout = _layout(options)
        arguments = _chdb(parts) if parts.scheme == "chdb" else _server(parts, options)
        database = _database(parts, options)
    except ValueError as error:
        raise ConfigError(f"store: {where!r}: {error}") from None
    folder = arguments.get("path", ":memory:")
    if existing and folder != ":memory:" and not Path(folder).is_dir():
        raise ConfigError(f"store: {where!r}: no such folder; smidgen store migrate makes it")
    client = _connect(arguments, database, where)
    settings = dict(layout.settings)
    if (waits_s := arguments.get("send_receive_timeout")) and not _own_limit(client):
        settings["max_execution_time"] = str(max(1, int(waits_s * _ANSWER_SHARE)))
    for name, value in settings.items():
        client.set_client_setting(name, value)
    return client


def _options(parts: SplitResult) -> dict[str, str]:
    return dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))


def _layout(options: Mapping[str, str]) -> TableLayout:
    replicated = options.get("replicated", "0")
    if replicated not in ("0", "1"):
        raise ValueError(f"replicated should be 0 or 1, not {replicated!r}")
    return TableLayout(options.get("cluster", ""), replicated == "1")


def _server(parts: SplitResult, options: Mapping[str, str]) -> dict[str, Any]:
    if parts.scheme not in ("http", "https"):
        raise ValueError("should begin with http://, https:// or chdb://")
    if not parts.hostname:
        raise ValueError("has no host")
    known = _HTTP_OPTIONS | _LAYOUT_OPTIONS
    for name in options:
        if name not in known:
            raise ValueError(f"unknown option {name!r}; known are {', '.join(sorted(known))}")
    return {
        **{name: value for name, value in options.items() if name in _HTTP_OPTIONS},
        **{name: _seconds(name, options.get(name), default) for name, default in _TIMEOUTS.items()},
        "interface": parts.scheme,
        "host": parts.hostname,
        "port": parts.port,
        "username": unquote(parts.username) if parts.username else None,
        "password": unquote(parts.password or ""),
        # Sessions serialise queries, and nothing here needs one; a pool of its own can be closed.
        "autogenerate_session_id": False,
        "dedicated_pool": True,
    }


def _seconds(name: str, text: str | None, default: int) -> int:
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ValueError(f"{name} should be whole seconds, 1 or more, not {text!r}")
    return int(text)


def _own_limit(client: Client) -> bool:
    """Return whether the server limits this user's queries already, or lets the user set nothing."""
    setting = client.server_settings.get("max_execution_time")
    return setting is None or bool(setting.readonly) or float(setting.value) > 0


def _chdb(parts: SplitResult) -> dict[str, Any]:
    require("chdb")
    if parts.netloc == "memory" and parts.path in ("", "/"):
        return {"interface": "chdb", "path": ":memory:"}
    if parts.netloc or parts.path in ("", "/"):
        raise ValueError("should be chdb:///absolute/path or chdb://memory")
    return {"interface": "chdb", "path": unquote(parts.path)}


def _database(parts: SplitResult, options: Mapping[str, str]) -> str:
    if parts.scheme == "chdb":
        if options:
            raise ValueError("chdb takes no options")
        return _DEFAULT_DATABASE
    name = unquote(parts.path.strip("/"))
    if "/" in name:
        raise ValueError("the path should be one database name")
    return name or _DEFAULT_DATABASE


def _connect(arguments: Mapping[str, Any], database: str, where: str) -> Client:
    import clickhouse_connect
    from clickhouse_connect.driver.exceptions import DatabaseError

    from pipeline.storage.failures import translated

    # What they would warn of is raised, and said once, as StoreUnavailable.
    for library in ("clickhouse_connect", "urllib3"):
        logging.getLogger(library).setLevel(logging.ERROR)
    try:
        with translated(where):
            client = clickhouse_connect.get_client(**arguments)
    except (DatabaseError, OSError, ValueError) as error:
        raise ConfigError(f"store: {where!r}: {' '.join(str(error).split())[:300]}") from error
    client.database = database
    return client
