"""Status of ``smidgen events tail``: services that are judged, and reasons why others are not yet."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing

from pipeline.commands.terminal import print_lines
from pipeline.kafka import Broker, check_connection, topic_facts
from pipeline.model.clock import system_clock
from pipeline.model.errors import SmidgenError
from pipeline.model.units import DAY_S, format_duration
from pipeline.settings.config import Settings
from pipeline.settings.workloads import known_workloads
from pipeline.storage.connect import open_store
from pipeline.storage.inspection import inspect_store
from pipeline.storage.interface import RowQuery
from pipeline.views.report.unjudged import describe_unjudged

ASK_S = 5.0
"""Interval between status queries."""

Subject = tuple[str, str]
"""A service and a workload; both empty stand for all."""


async def print_status(settings: Settings, service: str | None) -> None:
    """Print the status on stderr, and again at every change, until cancelled; nothing without a broker.

    Reasons are in the store: they are left out unless the settings name one.
    """
    broker = Broker.of(settings)
    if await check_connection(broker):  # the tail itself fails by it, with a message
        return
    whose = f" of {service}" if service else ""
    print_lines([f"waiting for events{whose} on {broker}; --from-start shows those before"], err=True)
    lines: dict[Subject, str] = {}
    while True:
        try:
            standing = await _standing(settings, service)
        except SmidgenError as error:
            standing = {("", ""): str(error)}
        for subject, text in standing.items():
            state = text.partition(":")[0]  # changed numbers alone are no news
            if lines.get(subject) != state:
                lines[subject] = state
                print_lines([text], err=True)
        await asyncio.sleep(ASK_S)


async def _standing(settings: Settings, service: str | None) -> dict[Subject, str]:
    """Return one line for each service and workload that was scanned, or the reason if there is none."""
    if "store" in settings.model_fields_set:
        lines = await asyncio.to_thread(scanned, settings, service)
        if lines:
            return lines
    broker = Broker.of(settings)
    facts = await topic_facts(broker, settings.read_topics(), "profiles")
    if facts.newest is None:
        return {("", ""): "no profiles have come yet: smidgen agent run --service NAME -- COMMAND"}
    if "store" not in settings.model_fields_set:
        return {}
    return {("", ""): "profiles come, and nothing is scanned yet: smidgen doctor, if that lasts"}


def scanned(settings: Settings, service: str | None = None) -> dict[Subject, str]:
    """Return for each service and workload scanned within a day whether it is judged, else why not.

    Raises:
        StoreUnavailable: the store does not answer.
        ConfigError: it refuses us.
    """
    now = system_clock()
    with closing(open_store(settings.store, existing=True)) as store:
        rows = store.rows(RowQuery("scans", service, now - DAY_S, now + DAY_S))
    lacking = {(row.service, row.workload): row.unjudged for row in inspect_store(settings.store).unjudged}
    workloads = known_workloads(settings.workloads)
    lines: dict[Subject, str] = {}
    for subject in _subjects(rows):
        name, workload = subject
        if (why := lacking.get(subject)) is None:
            lines[subject] = f"{name} is judged by {workload}: a change is reported once"
            continue
        scanned_workload = workloads.get(workload)
        least = (
            f" ({workload} looks at {format_duration(scanned_workload.span_s)} of data at least)"
            if scanned_workload
            else ""
        )
        lines[subject] = f"{name} is not judged yet by {workload}, {describe_unjudged(why)}{least}"
    return lines


def _subjects(rows: Sequence[dict[str, object]]) -> list[Subject]:
    return sorted({(str(row["service"]), str(row["workload"])) for row in rows})
