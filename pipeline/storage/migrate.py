"""Bring a database to the present set of tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources

from clickhouse_connect.driver.client import Client

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


def apply(client: Client, database: str) -> list[str]:
    """Apply what is missing and return the names of the files applied.

    Two processes may do this at once: both run every statement, which does nothing the second time, and a
    file is noted as applied only after its last statement.
    """
    client.command(_MAKE_DATABASE, {"name": database}, use_database=False)
    client.command(_MAKE_LEDGER)
    done = {row[0] for row in client.query(_APPLIED).result_rows}
    missing = [migration for migration in migrations() if migration.version not in done]
    for migration in missing:
        for statement in migration.statements:
            client.command(statement)
        client.insert(
            "schema_migrations",
            [[migration.version], [migration.name]],
            column_names=["version", "name"],
            column_type_names=["UInt32", "String"],
            column_oriented=True,
        )
    return [migration.name for migration in missing]
