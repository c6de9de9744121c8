"""``smidgen release compare``: a release against the one before, as report and as gate of a deployment."""

from __future__ import annotations

import io
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console

from pipeline.backtest.files import dataset_files
from pipeline.commands.lazy_group import LazyGroup
from pipeline.commands.options import Duration, FiniteRange, settings_options
from pipeline.commands.release.reading import Asked, Comparison, Source, of_folder, of_store
from pipeline.commands.release.showing import show, to_json
from pipeline.commands.release.watch import Watch, look_at_folder, look_at_store
from pipeline.files.outputs import check_outputs, write_output
from pipeline.model.clock import from_iso
from pipeline.model.errors import ConfigError, InvalidMessage
from pipeline.releases.gcpu import CompareConfig
from pipeline.settings.config import Settings
from pipeline.storage.connect import open_store

EXIT_CODES = {"steady": 0, "slower": 1, "open": 3}

_DEFAULTS = CompareConfig()

_WIDTH = 140
"""Columns of a page."""

_EXAMPLES = """\b
Examples:
  smidgen release compare v1.4 v1.5 --service shop
  smidgen release compare v1.4 v1.5 --service shop --watch --timeout 2h
  smidgen release compare track=stable track=canary --service shop --json
  smidgen release compare v1.4 v1.5 --service shop --data out/
"""


@click.group(cls=LazyGroup)
def release() -> None:
    """Hold releases of a service against each other."""


@release.command(name="compare", epilog=_EXAMPLES)
@click.argument("baseline", metavar="A")
@click.argument("candidate", metavar="B")
@click.option("--service", required=True, metavar="S", help="Whose releases.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="A dataset folder with label columns, instead of a store.",
)
@click.option(
    "--since",
    metavar="TIME",
    help="ISO 8601: the hour that it is in is the first one (default: a week before the end).",
)
@click.option(
    "--until",
    metavar="TIME",
    help="ISO 8601: nothing after; the hour that it is in is not looked at (default: now).",
)
@click.option(
    "--threshold",
    type=FiniteRange(min=0, min_open=True, max=1),
    default=_DEFAULTS.threshold,
    show_default=True,
    help="Rise that counts, as a share of the service's CPU.",
)
@click.option(
    "--relative",
    type=FiniteRange(min=0),
    default=_DEFAULTS.relative,
    show_default=True,
    help="Rise that counts, as a share of the series' own level; the larger one holds.",
)
@click.option(
    "--alpha",
    type=FiniteRange(min=0, min_open=True, max=0.5),
    default=_DEFAULTS.alpha,
    show_default=True,
    help="Chance that any series counts as slower though the releases do not differ.",
)
@click.option(
    "--power",
    type=FiniteRange(min=0.5, max=1, max_open=True),
    default=_DEFAULTS.power,
    show_default=True,
    help="Chance that a rise of the threshold is found.",
)
@click.option("--by", multiple=True, metavar="LABEL", help="Compare within values of these labels only.")
@click.option("--without", multiple=True, metavar="HOST", help="Leave a host out. May be repeated.")
@click.option("--sequential", is_flag=True, help="Hold the errors however often you look.")
@click.option("--watch", is_flag=True, help="Look again and again until it is decided; sequential.")
@click.option("--interval", type=Duration(), default="30s", show_default=True, help="Between two looks.")
@click.option("--timeout", type=Duration(), metavar="DURATION", help="Longest time to watch.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with all tested series.")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="OUT.html", help="Page to write."
)
@settings_options("store", "stack_window")
def compare_releases(settings: Settings, **options: Any) -> int:
    """Say which subroutines and endpoints release B makes slower or faster than release A.

    A and B are releases as agents send them (--release), or a label as name=value. Best is a canary: both at
    the same time. Then each hour and each combination of labels (region, machine type) is compared within
    itself, and hosts are what varies: one that ran both releases counts against itself. Where B only followed
    A, the report says that the evidence is weaker.

    What is compared is gCPU, the share of the service's CPU. A series is slower if its rise is significant
    among all series (--alpha is the chance of any false alarm), may be as large as the threshold, and is not
    that of one host. Callers of what got slower stand under it. "detectable" is the smallest rise that would
    have been found in 90 of 100 cases.

    Exit code: 0 if no series rose by the threshold, 1 if one did, 3 if there are not enough samples yet (with
    how many are missing), 2 on bad usage. A job that calls again after 3 says --sequential or --watch: these
    bounds hold at all looks together. With --data, --watch replays the folder, and stops where a live one
    would have.
    """
    asked = Asked(
        baseline=options["baseline"],
        candidate=options["candidate"],
        by=options["by"] or None,
        without=options["without"],
        config=CompareConfig(
            threshold=options["threshold"],
            relative=options["relative"],
            alpha=options["alpha"],
            power=options["power"],
            sequential=options["sequential"] or options["watch"],
        ),
    )
    if asked.baseline == asked.candidate:
        raise ConfigError(f"release {asked.baseline}: is compared with itself")
    since, until = (_moment(options[name], f"--{name}") for name in ("since", "until"))
    if since is not None and until is not None and since >= until:
        raise ConfigError("--since: should be before the end")
    watch = Watch(options["interval"], options["timeout"]) if options["watch"] else None
    data = options["data"]
    check_outputs({"-o": options["out"]}, dataset_files(data) if data else ())
    if data:
        source = of_folder(data, options["service"])
        comparison = look_at_folder(source, asked, (since, until), watch)
    else:
        service = options["service"]

        def opened() -> Source:
            store = stack.enter_context(closing(open_store(settings.store, existing=True)))
            return of_store(store, service, settings.stack_window_s)

        with ExitStack() as stack:
            comparison = look_at_store(opened, asked, (since, until), watch)
    _report(comparison, options)
    return EXIT_CODES[comparison.decision]


def _report(comparison: Comparison, options: dict[str, Any]) -> None:
    if options["out"]:
        page = Console(record=True, width=_WIDTH, file=io.StringIO(), highlight=False)
        show(page, comparison)
        write_output(options["out"], page.export_html().encode())
    if options["as_json"]:
        click.echo(orjson.dumps(to_json(comparison)).decode())
        return
    show(Console(highlight=False, soft_wrap=False), comparison)


def _moment(text: str | None, flag: str) -> float | None:
    if text is None:
        return None
    try:
        return from_iso(text)
    except InvalidMessage as error:
        raise ConfigError(f"{flag}: {error}") from None
