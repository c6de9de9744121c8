"""``smidgen agent list``: the host agents that follow a gateway's rules, each with its state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from agents.commands.options import checked_by
from pipeline.commands.options import settings_options
from pipeline.commands.terminal import escape_controls, table_console
from pipeline.model.units import format_duration
from pipeline.settings.config import Settings

if TYPE_CHECKING:
    from rich.table import Table

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
@click.option(
    "--gateway",
    required=True,
    metavar="URL",
    callback=checked_by(_url),
    help="http://HOST:PORT of a gateway that serves rules (smidgen gateway --agents).",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a host.")
@settings_options("log_level")
def list_agents(settings: Settings, gateway: str, as_json: bool) -> int:
    """List the host agents that a gateway has heard of in the last day, and the rates that it plans.

    An agent is silent if it was not heard for more than three minutes. Messages are counted since an agent
    began. The token is that of http_token_file. Exit code: 0, 1 if an agent is silent or has dropped
    messages, 2 if the gateway cannot be asked.
    """
    from agents.host.fleet import FleetClient

    view = FleetClient(gateway, settings.token).view()
    if as_json:
        import orjson

        for heard in view.agents:
            click.echo(orjson.dumps(_to_json(view, heard)).decode())
    else:
        console = table_console()
        console.print(_table(view))
        if view.plans:
            console.print()
            console.print(_plans_table(view))
    return int(any(view.is_silent(heard) or heard.status.dropped for heard in view.agents))


def _table(view: FleetView) -> Table:
    from rich.table import Table

    columns = ("host", "heard", "processes", "kernels", "cost", "budget", "Hz", "rules", "waiting", "dropped")
    table = Table(*columns)
    for column in table.columns[4:]:
        column.justify = "right"
    for heard in view.agents:
        status = heard.status
        processes = ", ".join(f"{count} {state}" for state, count in status.processes.items() if count)
        age = f"{format_duration(round(view.age_s(heard)))} ago"
        table.add_row(
            escape_controls(status.host),
            f"silent, {age}" if view.is_silent(heard) else age,
            processes or "none",
            escape_controls(", ".join(f"{count} {name}" for name, count in status.kernels.items())),
            f"{100 * status.cost_share:.2f} %",
            f"{100 * status.budget:g} %",
            _rates(list(status.rates_hz.values())),
            "current" if view.is_current(heard) else "out of date",
            str(status.waiting),
            str(status.dropped),
        )
    return table


def _plans_table(view: FleetView) -> Table:
    from rich.table import Table

    table = Table("service", "threshold", "hosts", "busy CPUs", "enough, Hz", "planned, Hz", "because")
    for column in table.columns[1:6]:
        column.justify = "right"
    for service, plan in view.plans.items():
        table.add_row(
            escape_controls(service),
            f"{100 * plan.threshold:.3g} %",
            str(plan.hosts),
            f"{plan.cpus:.3g}",
            "none" if plan.enough_hz is None else f"{plan.enough_hz:.3g}",
            f"{plan.rate_hz:.3g}",
            _because(plan, view.now),
        )
    return table


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
