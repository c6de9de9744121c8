"""``smidgen release compare``: a release against the one before, as report and as gate of a deployment."""

from __future__ import annotations

import io
from contextlib import ExitStack, closing
from pathlib import Path

import click
from rich.console import Console

from pipeline.backtest.files import dataset_files
from pipeline.commands.lazy_group import LazyGroup
from pipeline.commands.options import settings_options
from pipeline.commands.release.reading import Asked, Source, of_folder, of_store
from pipeline.commands.release.showing import show, to_json
from pipeline.commands.release.watch import Watch, look_at_folder, look_at_store
from pipeline.commands.request import (
    EXISTING_FOLDER,
    FILE,
    Duration,
    IsoTime,
    argument,
    json_option,
    option,
    takes,
)
from pipeline.commands.tables import print_json
from pipeline.files.outputs import check_outputs, write_output
from pipeline.model.errors import ConfigError
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
@takes
def compare_releases(
    baseline: str = argument(metavar="A"),
    candidate: str = argument(metavar="B"),
    service: str = option(metavar="S", help="Service of the releases."),
    data: Path | None = option(
        kind=EXISTING_FOLDER, metavar="DIR", help="Dataset folder with label columns, instead of a store."
    ),
    since: float | None = option(
        kind=IsoTime(),
        help="ISO 8601 time in the first hour that is compared (default: a week before the end).",
    ),
    until: float | None = option(
        kind=IsoTime(),
        help="ISO 8601 time; its hour and what comes after are left out (default: now).",
    ),
    threshold: float = option(
        _DEFAULTS.threshold, above=0, most=1, help="Smallest rise that counts, a share of the service's CPU."
    ),
    relative: float = option(
        _DEFAULTS.relative,
        least=0,
        help="Smallest rise that counts, a share of the series' level; the larger bound holds.",
    ),
    alpha: float = option(
        _DEFAULTS.alpha,
        above=0,
        most=0.5,
        help="Chance of a false alarm in any series of equal releases.",
    ),
    power: float = option(
        _DEFAULTS.power, least=0.5, under=1, help="Chance that a rise of the threshold is detected."
    ),
    by: tuple[str, ...] = option(
        metavar="LABEL", help="Label within whose values releases are compared (default: all labels)."
    ),
    without: tuple[str, ...] = option(metavar="HOST", help="Host that is left out."),
    sequential: bool = option(help="Keep the error rates however often you look."),
    watch: bool = option(help="Look repeatedly until there is a decision; implies --sequential."),
    interval: float = option("30s", kind=Duration(), help="Time between two looks."),
    timeout: float | None = option(kind=Duration(), help="Longest time to watch."),
    as_json: bool = json_option("with all tested series"),
    out: Path | None = option(flag="-o/--out", kind=FILE, metavar="OUT.html", help="Page to write."),
    settings: Settings = settings_options("store", "stack_window"),
) -> int:
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
    config = CompareConfig(
        threshold=threshold,
        relative=relative,
        alpha=alpha,
        power=power,
        sequential=sequential or watch,
    )
    asked = Asked(baseline, candidate, by or None, without, config)
    if baseline == candidate:
        raise ConfigError(f"release {baseline}: is compared with itself")
    span = since, until
    if since is not None and until is not None and since >= until:
        raise ConfigError("--since: should be before the end")
    pace = Watch(interval, timeout) if watch else None
    check_outputs({"-o": out}, dataset_files(data) if data else ())
    if data:
        comparison = look_at_folder(of_folder(data, service), asked, span, pace)
    else:

        def opened() -> Source:
            store = stack.enter_context(closing(open_store(settings.store, existing=True)))
            return of_store(store, service, settings.stack_window_s)

        with ExitStack() as stack:
            comparison = look_at_store(opened, asked, span, pace)
    if out:
        page = Console(record=True, width=_WIDTH, file=io.StringIO(), highlight=False)
        show(page, comparison)
        write_output(out, page.export_html().encode())
    if as_json:
        print_json(to_json(comparison))
    else:
        show(Console(highlight=False, soft_wrap=False), comparison)
    return EXIT_CODES[comparison.decision]
