"""``smidgen agent list``: the host agents that follow a gateway's rules, each with its state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from pipeline.commands.options import settings_options
from pipeline.commands.request import json_option, option, takes
from pipeline.commands.tables import Column, print_json_lines, print_table
from pipeline.model.units import format_duration
from pipeline.settings.config import Settings

if TYPE_CHECKING:
    from agents.host.fleet import FleetView, HeardStatus, ServicePlan
    from agents.host.fleet.status import PlanReason

_EXAMPLES = """\b
Examples:
  smidgen agent list --gateway http://gateway:4040
  smidgen agent list --gateway http://gateway:4040 --json
"""


def _url(text: str) -> str:
    from agents.host.fleet.client import check_url

    return check_url(text)


@click.command("list", epilog=_EXAMPLES)
@takes
def list_agents(
    gateway: str = option(
        parse=_url,
        metavar="URL",
        help="Address http://HOST:PORT of a gateway that serves rules (smidgen gateway --agents).",
    ),
    as_json: bool = json_option("a host"),
    settings: Settings = settings_options("log_level"),
) -> int:
    """List the host agents that a gateway has heard of in the last day, and the rates that it plans.

    An agent is silent if it was not heard for more than three minutes. Messages are counted since an agent
    began. The token is that of http_token_file. Exit code: 0, 1 if an agent is silent or has dropped
    messages, 2 if the gateway cannot be asked.
    """
    from agents.host.fleet import FleetClient

    view = FleetClient(gateway, settings.token).view()
    if as_json:
        print_json_lines(_to_json(view, heard) for heard in view.agents)
    else:
        print_table(_columns(view), view.agents)
        if view.plans:
            print_table(_plan_columns(view), view.plans.items())
    return int(any(view.is_silent(heard) or heard.status.dropped for heard in view.agents))


def _columns(view: FleetView) -> tuple[Column[HeardStatus], ...]:
    return (
        Column("host", lambda row: row.status.host),
        Column("heard", lambda row: _heard(view, row)),
        Column("processes", lambda row: _counts(row.status.processes) or "none"),
        Column("kernels", lambda row: _counts(row.status.kernels)),
        Column("cost", lambda row: 100 * row.status.cost_share, "{:.2f} %".format),
        Column("budget", lambda row: 100 * row.status.budget, "{:g} %".format),
        Column("Hz", lambda row: _rates(list(row.status.rates_hz.values())), str),
        Column("rules", lambda row: "current" if view.is_current(row) else "out of date"),
        Column("waiting", lambda row: row.status.waiting, "d"),
        Column("dropped", lambda row: row.status.dropped, "d"),
    )


def _heard(view: FleetView, heard: HeardStatus) -> str:
    age = f"{format_duration(round(view.age_s(heard)))} ago"
    return f"silent, {age}" if view.is_silent(heard) else age


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def _plan_columns(view: FleetView) -> tuple[Column[tuple[str, ServicePlan]], ...]:
    return (
        Column("service", lambda row: row[0]),
        Column("threshold", lambda row: 100 * row[1].threshold, "{:.3g} %".format),
        Column("hosts", lambda row: row[1].hosts, "d"),
        Column("busy CPUs", lambda row: row[1].cpus, ".3g"),
        Column("enough, Hz", lambda row: row[1].enough_hz, ".3g"),
        Column("planned, Hz", lambda row: row[1].rate_hz, ".3g"),
        Column("because", lambda row: _because(row[1], view.now)),
    )


_BECAUSE: Mapping[PlanReason, str] = {
    "enough": "the lowest that is enough",
    "fastest": "as fast as is planned",
    "slowest": "as slow as is planned",
    "budget": "as much as the budget allows",
}


def _because(plan: ServicePlan, now: float) -> str:
    if plan.changes is None:
        return _BECAUSE[plan.reason]
    wait = format_duration(round(max(plan.changes - now, 0.0)))
    return f"{plan.target_hz:.3g} Hz in {wait} if that stays {_BECAUSE[plan.reason]}"


def _rates(rates_hz: list[float]) -> str:
    if not rates_hz:
        return ""
    lowest, highest = min(rates_hz), max(rates_hz)
    return f"{lowest:.3g}" if lowest == highest else f"{lowest:.3g} to {highest:.3g}"


def _to_json(view: FleetView, heard: HeardStatus) -> dict[str, Any]:
    planned = heard.status.planned
    return {
        **heard.status.model_dump(),
        "plans": {service: view.plans[service].model_dump() for service in planned if service in view.plans},
        "age_s": view.age_s(heard),
        "is_silent": view.is_silent(heard),
        "is_current": view.is_current(heard),
    }
