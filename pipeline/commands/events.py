"""``smidgen events``: reads regression events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any

import click
from rich.text import Text

from pipeline.commands.options import settings_options
from pipeline.commands.request import Duration, json_option, option, takes
from pipeline.commands.tables import print_json
from pipeline.commands.terminal import escape_line, print_lines, print_styled
from pipeline.commands.waiting import print_status
from pipeline.kafka import Broker, Entry, read_topic
from pipeline.messages.events import DETECTED, RESOLVED, UPDATED, decode_event
from pipeline.model.errors import InvalidMessage
from pipeline.model.metric_kind import is_gcpu
from pipeline.processes import TaskSupervisor
from pipeline.settings.config import Settings, local_pipeline
from pipeline.views.report.explain import update_words

Event = dict[str, Any]


@click.group()
def events() -> None:
    """Read regression events."""


@events.command()
@takes
def tail(
    service: str | None = option(metavar="S", help="Service of the events (default: all)."),
    as_json: bool = json_option(help="Print one CloudEvent a line."),
    from_start: bool = option(help="Begin with the oldest event that is kept."),
    follow: bool = option(
        True, flag="--follow/--no-follow", help="Wait for more events, or end with the newest."
    ),
    count: int | None = option(least=1, help="Number of events to end after; exit 1 if there are fewer."),
    timeout: float | None = option(kind=Duration(), help="Time to end after."),
    settings: Settings = settings_options("broker", "store", "topics", "workloads"),
) -> int:
    """Print events as they come, from now on or (--from-start, --no-follow) from the oldest.

    What is waited for goes to stderr: with --store, also which services are not judged yet, and why.
    """
    show = print_json if as_json else partial(_print_lines, pages=_pages(settings))
    entries = read_topic(
        Broker.of(settings),
        settings.read_topics()["regressions"],
        from_start=from_start or not follow,
        follow=follow,
        timeout_s=timeout,
    )
    printed = asyncio.run(_while_saying(settings, service, follow, _tail(entries, service, count, show)))
    return 1 if count is not None and printed < count else 0


async def _while_saying(
    settings: Settings, service: str | None, follow: bool, tailing: Coroutine[Any, Any, int]
) -> int:
    """Tail events, and write meanwhile to stderr what is being waited for."""
    if not follow:
        return await tailing
    tasks = TaskSupervisor()
    tasks.run("status", partial(print_status, settings, service))
    try:
        return await tailing
    finally:
        await tasks.close()


async def _tail(
    entries: AsyncIterator[Entry], service: str | None, count: int | None, show: Callable[[Event], None]
) -> int:
    printed = 0
    async for entry in entries:
        try:
            event = decode_event(entry.value)
        except InvalidMessage as error:
            position = f"partition {entry.partition} offset {entry.offset}"
            print_lines([f"{position}: {error}"], err=True)
            continue
        if service is not None and event["data"].get("service") != service:
            continue
        show(event)
        printed += 1
        if printed == count:
            break
    return printed


def _pages(settings: Settings) -> str:
    """Return the address of events' pages, if `smidgen up` runs them on this machine."""
    local = local_pipeline()
    return f"{local.dashboard}/regressions/" if local and local.broker == settings.broker else ""


def _print_lines(event: Event, pages: str) -> None:
    print_styled(describe(event, pages))


def describe(event: Event, pages: str = "") -> list[Text]:
    """Return an event as a few lines for people, controls escaped; missing fields are left out."""
    lines = {UPDATED: _updated, RESOLVED: _resolved}.get(str(event.get("type")), _detected)(event["data"])
    last = [Text(f"  id      {event['id']}", style="dim")]
    if pages and event.get("type") == DETECTED:
        last += [Text(f"  page    {pages}{event['id']}", style="dim")]
    return [*map(escape_line, (*lines, *last))]


def _detected(data: Event) -> list[Text]:
    kind = f"{data.get('workload', '')} {str(data.get('kind', '')).replace('_', '-')}"
    lines = [
        _heading(data, "bold red", kind),
        Text(f"  since {data.get('change_time', '?')}  {_levels(data)}"),
    ]
    causes = data.get("root_causes") or []
    if causes:
        score = f"  score {causes[0].get('score', 0):.2f}"
        rest = f", {len(causes) - 1} more" if len(causes) > 1 else ""
        lines.append(Text.assemble("  suspect ", *_change(causes[0].get("change", {})), score, rest))
    else:
        lines.append(Text("  no suspect"))
    for explanation in (data.get("explanations") or [])[:1]:
        lines.append(Text.assemble("  follows ", (str(explanation.get("metric", "?")), "yellow")))
    group = data.get("group") or []
    if group:
        names = ", ".join(str(member.get("metric", "?")) for member in group[:5])
        more = f", {len(group) - 5} more" if len(group) > 5 else ""
        lines.append(Text(f"  with    {names}{more}"))
    return lines


def _updated(data: Event) -> list[Text]:
    escalated = data.get("grown") or {}
    metric = escalated.get("metric", data.get("metric"))
    cause = "" if metric == data.get("metric") else f"  by {metric}"
    return [
        _heading(data, "bold red", f"{data.get('workload', '')} update: {update_words(data)}"),
        Text(f"  since {data.get('change_time', '?')}  {_present(data)}{cause}"),
        Text(f"  of      {data.get('regression', '?')}"),
    ]


def _resolved(data: Event) -> list[Text]:
    lines = [
        _heading(data, "bold green", f"{data.get('workload', '')} is resolved"),
        Text(f"  since {data.get('change_time', '?')}  {_present(data)}"),
        Text(f"  of      {data.get('regression', '?')}"),
    ]
    for change in (data.get("resolved_by") or [])[:1]:
        lines.append(Text.assemble("  fix     ", *_change(change)))
    return lines


def _heading(data: Event, style: str, what: str) -> Text:
    return Text.assemble(
        (str(data.get("metric", "?")), style), "  ", (str(data.get("service", "?")), "bold"), f"  {what}"
    )


def _change(change: Event) -> list[str | tuple[str, str]]:
    title = f"{str(change.get('id', '?'))[:12]} {change.get('title', '')}"
    return [(title, "yellow"), f" by {change['author']}" if change.get("author") else ""]


def _numbers(data: Event, *names: str) -> list[float]:
    """Return the named numbers of an event; none if the event lacks one."""
    try:
        return [float(data[name]) for name in names]
    except (KeyError, TypeError, ValueError):
        return []


def _present(data: Event) -> str:
    """Return the present level, and those of the report."""
    if not (numbers := _numbers(data, "before", "after", "level", "share_remaining")):
        return ""
    before, after, level, share = numbers
    if is_gcpu(data.get("metric_kind", "subroutine")):
        present, change = f"{level:.4%} of CPU", f"the rise from {before:.4%} to {after:.4%}"
    else:
        present, change = f"{level:g}", f"the change from {before:g} to {after:g}"
    return f"{present}, {'as reported' if round(share, 2) == 1 else f'{share:.0%} of {change}'}"


def _levels(data: Event) -> str:
    if not (numbers := _numbers(data, "before", "after", "delta")):
        return ""
    before, after, delta = numbers
    relative = data.get("relative")
    change = f"{relative:+.1%}" if isinstance(relative, int | float) else "new"
    if is_gcpu(data.get("metric_kind", "subroutine")):
        return f"{before:.4%} → {after:.4%} of CPU  ({delta * 100:+.4f} points, {change})"
    return f"{before:g} → {after:g}  ({delta:+g}, {change})"
