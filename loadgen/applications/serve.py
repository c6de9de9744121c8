"""Server of one application, with an injected regression or without, run by the application's own Python.

Nothing of Smidgen is imported: the environment holds only the application and its dependencies.

    python serve.py APPLICATION PORT FOLDER [KIND POSITION MILLISECONDS]
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import random
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MEASURED_S = 0.05
"""CPU time for which a unit of work is repeated to measure its cost."""

ROWS = 4000
LOG_BYTES = 4 * 1024**2
NAMES = ("Ada", "Alan", "Barbara", "Donald", "Edsger", "Frances", "Grace", "Hedy", "Ivan", "John")
CITIES = ("Bergen", "Cork", "Delft", "Genoa", "Gdansk", "Lille", "Porto", "Turku")
QUERY = "select count(*) from orders where note like '%none has this%'"
EVENT = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//bench//EN
BEGIN:VEVENT
UID:sample
DTSTAMP:20260101T000000Z
DTSTART:20260101T100000Z
DTEND:20260101T110000Z
SUMMARY:A sample
END:VEVENT
END:VCALENDAR
""".replace("\n", "\r\n")


def nested_loops(_: Path) -> Callable[[], object]:
    """Return a unit of work that compares all pairs of numbers."""

    def work() -> int:
        matches = 0
        for left in range(40):
            for right in range(40):
                if left * right == 39:
                    matches += 1
        return matches

    return work


def excessive_io(folder: Path) -> Callable[[], object]:
    """Return a unit of work that writes a line to a log and flushes it to the kernel at once."""
    log = folder / "excessive.log"

    def work() -> None:
        with log.open("a", encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_size > LOG_BYTES:
                file.truncate(0)
            file.write("a request is being served, which nobody needs to know\n")

    return work


def datasette_calls(_: Path) -> Callable[[], object]:
    """Return a unit of work that builds a WHERE clause."""
    filters = importlib.import_module("datasette.filters").Filters
    return lambda: filters([("city__exact", "Cork"), ("id__gt", "17")]).build_where_clauses("customers")


def datasette_query(folder: Path) -> Callable[[], object]:
    """Return a unit of work that scans a whole table for a condition without an index."""
    connection = sqlite3.connect(folder / "shop.db", check_same_thread=False)
    return lambda: connection.execute(QUERY).fetchone()


def radicale_calls(_: Path) -> Callable[[], object]:
    """Return a unit of work that parses an event."""
    read = importlib.import_module("radicale.item").read_components
    return lambda: read(EVENT)


def radicale_query(folder: Path) -> Callable[[], object]:
    """Return a unit of work that reads a whole calendar for one event."""

    def work() -> int:
        return sum(len(path.read_bytes()) for path in (folder / "collection-root/ada/work").glob("*.ics"))

    return work


WORK: dict[str, dict[str, Callable[[Path], Callable[[], object]]]] = {
    "datasette": {
        "nested-loops": nested_loops,
        "redundant-calls": datasette_calls,
        "excessive-io": excessive_io,
        "inefficient-query": datasette_query,
    },
    "radicale": {
        "nested-loops": nested_loops,
        "redundant-calls": radicale_calls,
        "excessive-io": excessive_io,
        "inefficient-query": radicale_query,
    },
}
"""Application → kind of regression → function that returns a unit of its work."""


def inject(application: str, kind: str, position: str, milliseconds: float, folder: Path) -> None:
    """Make each call of a function cost ``milliseconds`` more of CPU time."""
    module, _, path = position.partition(":")
    *outer, name = path.split(".")
    owner: Any = importlib.import_module(module)
    for part in outer:
        owner = getattr(owner, part)
    function = getattr(owner, name)
    extra_s = milliseconds / 1e3
    make = WORK[application][kind]
    ready: list[tuple[Callable[[], object], int]] = []

    def slower(*args: Any, **kwargs: Any) -> Any:
        if not ready:  # made at the first call: the work's data exist by then
            work = make(folder)
            ready.append((work, max(1, round(extra_s / _cost_s(work)))))
        work, times = ready[0]
        for _ in range(times):
            work()
        return function(*args, **kwargs)

    setattr(owner, name, slower)


def _cost_s(work: Callable[[], object]) -> float:
    """Return the CPU time of one call: the mean over as many calls as fit."""
    work()
    begin, many = time.thread_time(), 0
    while (used := time.thread_time() - begin) < MEASURED_S:
        work()
        many += 1
    return used / many


def serve_datasette(port: int, folder: Path) -> None:
    """Serve a small shop's database."""
    database = folder / "shop.db"
    if not database.exists():
        _fill(database)
    application = importlib.import_module("datasette.app").Datasette(
        files=[str(database)],
        settings={"default_page_size": 10, "suggest_facets": False, "num_sql_threads": 1},
        metadata={
            "databases": {
                "shop": {
                    "queries": {
                        "cities": {"sql": "select city, count(*) as many from customers group by city"},
                    }
                }
            }
        },
    )
    asyncio.run(application.invoke_startup())
    importlib.import_module("uvicorn").run(
        application.app(), host="127.0.0.1", port=port, log_level="warning", access_log=False
    )


def _fill(database: Path) -> None:
    draw = random.Random(1)
    with sqlite3.connect(database) as connection:
        connection.execute("create table customers (id integer primary key, name text, city text)")
        connection.execute("create table orders (id integer primary key, customer integer, note text)")
        connection.execute("create table products (id integer primary key, title text, price real)")
        people = [(draw.choice(NAMES), draw.choice(CITIES)) for _ in range(ROWS // 4)]
        connection.executemany("insert into customers (name, city) values (?, ?)", people)
        orders = [(draw.randrange(1, ROWS // 4), f"note {draw.random()}") for _ in range(ROWS)]
        connection.executemany("insert into orders (customer, note) values (?, ?)", orders)
        products = [(f"product {number}", draw.uniform(1, 100)) for number in range(ROWS // 10)]
        connection.executemany("insert into products (title, price) values (?, ?)", products)


def serve_radicale(port: int, folder: Path) -> None:
    """Serve calendars from a folder."""
    configuration = importlib.import_module("radicale.config").load()
    configuration.update(
        {
            "server": {"hosts": f"127.0.0.1:{port}"},
            "auth": {"type": "none"},
            "storage": {"filesystem_folder": str(folder), "_filesystem_fsync": "False"},
            "logging": {"level": "error"},
        },
        "bench",
        privileged=True,
    )
    importlib.import_module("radicale.server").serve(configuration)


SERVE = {"datasette": serve_datasette, "radicale": serve_radicale}


def main(application: str, port: str, folder: str, *injected: str) -> None:
    """Serve until a signal ends it."""
    logging.disable(logging.INFO)
    Path(folder).mkdir(parents=True, exist_ok=True)
    if injected:
        kind, position, milliseconds = injected
        inject(application, kind, position, float(milliseconds), Path(folder))
    SERVE[application](int(port), Path(folder))


if __name__ == "__main__":
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    main(*sys.argv[1:])
