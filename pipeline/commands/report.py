"""``smidgen report``: one regression as a page."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from pipeline.commands.options import settings_options
from pipeline.commands.request import argument, option, takes
from pipeline.files.outputs import check_outputs, write_output
from pipeline.model.errors import ConfigError
from pipeline.settings.config import Settings
from pipeline.settings.workloads import Workload, known_workloads


@click.command()
@takes
def report(
    event_id: str = argument(metavar="ID"),
    output: Path = option(flag="-o/--output", help="Page to write."),
    settings: Settings = settings_options("store", "workloads"),
) -> None:
    """Draw the regression ID as one self-contained HTML page; the first six digits of its id are enough.

    The event's workload is looked for among --workloads, then among the presets.
    """
    # Loaded here: plotly takes half a second, which other uses of this module need not wait for.
    from pipeline.settings.names import read_namings
    from pipeline.stages.gather.symbols import SymbolStore
    from pipeline.storage.connect import open_store
    from pipeline.views.report.gather import find_event, gather
    from pipeline.views.report.page import render_report

    check_outputs({"-o": output}, map(Path, settings.workloads))
    with closing(open_store(settings.store, existing=True)) as opened:
        store = SymbolStore(opened, read_namings(settings.names))
        event = find_event(store, event_id)
        page = render_report(gather(store, event, _workload(event["data"].get("workload"), settings)))
    write_output(output, page.encode())
    click.echo(output)


def _workload(name: object, settings: Settings) -> Workload:
    workloads = known_workloads(settings.workloads)
    if not isinstance(name, str) or name not in workloads:
        raise ConfigError(f"the event's workload {name!r} is not known; name its file with --workloads")
    return workloads[name]
