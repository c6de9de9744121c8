"""Facts about a store for operators, which stages do not need."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError

from pipeline.model import Unjudged
from pipeline.settings.config import redact
from pipeline.storage import migrate
from pipeline.storage.answers import whole_rows
from pipeline.storage.connect import open_client
from pipeline.storage.failures import ACCESS_DENIED, translated

_NOW = "SELECT toUnixTimestamp64Milli(now64(3, 'UTC')) / 1000, version()"
_DISKS = "SELECT name, free_space, total_space FROM system.disks WHERE total_space > 0 ORDER BY name"
_MIGRATED = "SELECT count() FROM system.tables WHERE database = {name:String} AND name = 'schema_migrations'"
_UNSTABLE = """
SELECT toString(service), max(unstable_names) AS most
FROM scans
WHERE inserted > now() - INTERVAL 2 DAY
GROUP BY service
HAVING most > 0
ORDER BY most DESC, service
"""
_UNSTABLE_SINCE = 9  # the migration that added the column
_UNJUDGED = """
SELECT toString(service), toString(workload), toString(latest.1), latest.2, latest.3, latest.4, scans, made
FROM (
    SELECT service, workload, max(time) AS last, uniqExact(time) AS scans,
           argMax((code, series, value, bound), (time, series)) AS latest
    FROM unjudged
    WHERE inserted > now() - INTERVAL 1 DAY
    GROUP BY service, workload
) AS lacking
INNER JOIN (
    SELECT service, workload, max(time) AS last, uniqExact(time) AS made, argMax(series, time) AS all_series
    FROM scans
    WHERE inserted > now() - INTERVAL 1 DAY
    GROUP BY service, workload
) AS every USING (service, workload, last)
WHERE latest.2 >= all_series
ORDER BY scans DESC, service, workload
"""
_UNJUDGED_SINCE = 10
_MERGE = "OPTIMIZE TABLE {table:Identifier} FINAL"
_PARTS = """
SELECT table, sum(bytes_on_disk), sum(rows)
FROM system.parts
WHERE active AND database = currentDatabase()
GROUP BY table
"""


@dataclass(frozen=True, slots=True)
class Lacking:
    """A service and workload whose last scan could judge no series."""

    service: str
    workload: str
    unjudged: Unjudged  # most series of the last scan
    scans: int  # of the last day that could judge none, or only some
    made: int  # scans of the last day


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """State of a store."""

    version: str
    skew_s: float  # its clock minus ours
    round_trip_s: float  # what the skew may be wrong by
    missing: tuple[str, ...]  # migrations that were not applied
    unknown: tuple[int, ...]  # versions that this code does not know: it is older than the tables
    free: dict[str, float] | None  # disk → free share; None if the user may not see disks
    unstable: dict[str, int]  # service → most names of a scan of these days that lived for one process only
    unjudged: tuple[Lacking, ...]  # services whose last scan could judge nothing


@dataclass(frozen=True, slots=True)
class TableSize:
    """Size of a table."""

    size_bytes: int  # on disk
    rows: int


def merged_tables(dsn: str, tables: Sequence[str]) -> dict[str, TableSize]:
    """Merge all parts of tables, which takes long for large ones, and return the size of each.

    Tables without rows are left out.

    Raises:
        StoreUnavailable: it does not answer.
        ConfigError: the DSN is wrong, or it refuses the user.
    """
    with closing(open_client(dsn)) as client, translated(redact(dsn)):
        for table in tables:
            client.command(_MERGE, {"table": table})
        found = whole_rows(client.query(_PARTS))
    return {str(table): TableSize(int(size), int(rows)) for table, size, rows in found if table in tables}


def inspect_store(dsn: str, *, clock: Callable[[], float] = time.time) -> StoreFacts:
    """Ask a store.

    Raises:
        StoreUnavailable: it does not answer.
        ConfigError: the DSN is wrong, or it refuses the user.
    """
    with closing(open_client(dsn)) as client, translated(redact(dsn)):
        began = clock()
        ((now, version),) = whole_rows(client.query(_NOW))
        ended = clock()
        free = _free_shares(client)
        ((there,),) = whole_rows(client.query(_MIGRATED, {"name": client.database}))
        applied = migrate.applied(client) if there else frozenset()
        unstable = whole_rows(client.query(_UNSTABLE)) if _UNSTABLE_SINCE in applied else []
        unjudged = whole_rows(client.query(_UNJUDGED)) if _UNJUDGED_SINCE in applied else []
    shipped = {migration.version: migration.name for migration in migrate.migrations()}
    return StoreFacts(
        version=str(version),
        skew_s=float(now) - (began + ended) / 2,
        round_trip_s=ended - began,
        missing=tuple(name for number, name in shipped.items() if number not in applied),
        unknown=tuple(sorted(number for number in applied if number not in shipped)),
        free=free,
        unstable={str(service): int(most) for service, most in unstable},
        unjudged=tuple(
            Lacking(service, workload, Unjudged(code, series, value, bound), int(scans), int(made))
            for service, workload, code, series, value, bound, scans, made in unjudged
        ),
    )


def _free_shares(client: Client) -> dict[str, float] | None:
    try:
        disks = whole_rows(client.query(_DISKS))
    except DatabaseError as error:
        if error.code == ACCESS_DENIED:  # system.disks asks for a grant that nothing else here needs
            return None
        raise
    return {str(name): float(free) / float(total) for name, free, total in disks}
