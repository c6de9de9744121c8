"""Bring a database to the present set of tables.

Nothing is made where nothing is missing: a user who may only read and add rows can start a worker.

A migration only adds: tables, columns that have a default, and constraints on what workers of the version
before leave to its default. So workers of the version before go on
inserting and reading while the tables are newer than they are, and the other way round nothing reads a
column before the migration that adds it was applied. What is to go is taken out of the code first, and out
of the tables a version later.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources

from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError

from pipeline.model.errors import ConfigError
from pipeline.storage.answers import whole_rows
from pipeline.storage.failures import ACCESS_DENIED, NO_TABLES, missing_right
from pipeline.storage.layout import ONE_SERVER, TableLayout

logger = logging.getLogger(__name__)

_FILE = re.compile(r"(\d{4})_\w+\.sql")
_END = re.compile(r";[ \t]*(?:\n|$)")
_MAKE_DATABASE = "CREATE DATABASE IF NOT EXISTS {name:Identifier}"
_MAKE_LEDGER = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version UInt32,
    name String,
    applied DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY version
"""
_APPLIED = "SELECT DISTINCT version FROM schema_migrations"


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file."""

    version: int
    name: str
    statements: tuple[str, ...]


def migrations() -> Iterator[Migration]:
    """Return the migrations that ship with Smidgen, in order."""
    folder = resources.files("pipeline.storage.migrations")
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        numbered = _FILE.fullmatch(file.name)
        if numbered:
            statements = tuple(text.strip() for text in _END.split(file.read_text("utf-8")) if text.strip())
            yield Migration(int(numbered[1]), file.name, statements)


def applied(client: Client) -> frozenset[int]:
    """Return the versions that a database has; it must have had one."""
    return frozenset(row[0] for row in whole_rows(client.query(_APPLIED)))


def apply(
    client: Client, database: str, *, last: int | None = None, layout: TableLayout = ONE_SERVER
) -> list[str]:
    """Apply what is missing (up to version ``last``) and return the names of the files applied.

    Several processes may do this at once: each runs every statement, which does nothing the second time, and
    a file is noted as applied only after its last statement. A database that is newer than this code is left
    as it is, and reported.

    Raises:
        ConfigError: something is missing, and the user may not make it.
    """
    done = _done(client)
    shipped = list(migrations())
    newest = shipped[-1].version
    if max(done, default=0) > newest:
        logger.warning(
            "the store's tables are newer (%04d) than this version of Smidgen knows (%04d): going on, for "
            "migrations only add",
            max(done),
            newest,
        )
    missing = [m for m in shipped if m.version not in done and (last is None or m.version <= last)]
    try:
        if not done:
            client.command(layout.database(_MAKE_DATABASE), {"name": database}, use_database=False)
            client.command(layout.table(_MAKE_LEDGER))
        for migration in missing:
            _apply(client, migration, layout)
    except DatabaseError as error:
        if error.code != ACCESS_DENIED:
            raise
        lacking = f", who lacks {right}" if (right := missing_right(error)) else ""
        raise ConfigError(
            f"store: {database} is not up to date ({missing[0].name} to {missing[-1].name} are missing), and "
            f"this user{lacking}, may not change it; as one who may, run: smidgen store migrate"
        ) from error
    return [migration.name for migration in missing]


def _done(client: Client) -> frozenset[int]:
    try:
        return applied(client)
    except DatabaseError as error:
        if error.code in NO_TABLES:
            return frozenset()
        raise


def _apply(client: Client, migration: Migration, layout: TableLayout) -> None:
    for statement in migration.statements:
        client.command(layout.table(statement))
    client.insert(
        "schema_migrations",
        [[migration.version], [migration.name]],
        column_names=["version", "name"],
        column_type_names=["UInt32", "String"],
        column_oriented=True,
    )
