"""``smidgen release compare``: a release against the one before, as report and as gate of a deployment."""

from __future__ import annotations

import io
from contextlib import ExitStack, closing
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class _CompareRequest:
    baseline: str = argument(metavar="A")
    candidate: str = argument(metavar="B")
    service: str = option(metavar="S", help="Whose releases.")
    data: Path | None = option(
        kind=EXISTING_FOLDER, metavar="DIR", help="A dataset folder with label columns, instead of a store."
    )
    since: float | None = option(
        kind=IsoTime(),
        help="ISO 8601: the hour that it is in is the first one (default: a week before the end).",
    )
    until: float | None = option(
        kind=IsoTime(),
        help="ISO 8601: nothing after; the hour that it is in is not looked at (default: now).",
    )
    threshold: float = option(
        _DEFAULTS.threshold, above=0, most=1, help="Rise that counts, as a share of the service's CPU."
    )
    relative: float = option(
        _DEFAULTS.relative,
        least=0,
        help="Rise that counts, as a share of the series' own level; the larger one holds.",
    )
    alpha: float = option(
        _DEFAULTS.alpha,
        above=0,
        most=0.5,
        help="Chance that any series counts as slower though the releases do not differ.",
    )
    power: float = option(
        _DEFAULTS.power, least=0.5, below=1, help="Chance that a rise of the threshold is found."
    )
    by: tuple[str, ...] = option(metavar="LABEL", help="Compare within values of these labels only.")
    without: tuple[str, ...] = option(metavar="HOST", help="Leave a host out.")
    sequential: bool = option(help="Hold the errors however often you look.")
    watch: bool = option(help="Look again and again until it is decided; sequential.")
    interval: float = option("30s", kind=Duration(), help="Between two looks.")
    timeout: float | None = option(kind=Duration(), help="Longest time to watch.")
    as_json: bool = json_option("with all tested series")
    out: Path | None = option(flag="-o/--out", kind=FILE, metavar="OUT.html", help="Page to write.")

    @property
    def asked(self) -> Asked:
        """The comparison that is asked for."""
        config = CompareConfig(
            threshold=self.threshold,
            relative=self.relative,
            alpha=self.alpha,
            power=self.power,
            sequential=self.sequential or self.watch,
        )
        return Asked(self.baseline, self.candidate, self.by or None, self.without, config)


@release.command(name="compare", epilog=_EXAMPLES)
@takes
def compare_releases(
    request: _CompareRequest, settings: Settings = settings_options("store", "stack_window")
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
    asked = request.asked
    if asked.baseline == asked.candidate:
        raise ConfigError(f"release {asked.baseline}: is compared with itself")
    span = request.since, request.until
    if request.since is not None and request.until is not None and request.since >= request.until:
        raise ConfigError("--since: should be before the end")
    watch = Watch(request.interval, request.timeout) if request.watch else None
    check_outputs({"-o": request.out}, dataset_files(request.data) if request.data else ())
    if request.data:
        comparison = look_at_folder(of_folder(request.data, request.service), asked, span, watch)
    else:

        def opened() -> Source:
            store = stack.enter_context(closing(open_store(settings.store, existing=True)))
            return of_store(store, request.service, settings.stack_window_s)

        with ExitStack() as stack:
            comparison = look_at_store(opened, asked, span, watch)
    if request.out:
        page = Console(record=True, width=_WIDTH, file=io.StringIO(), highlight=False)
        show(page, comparison)
        write_output(request.out, page.export_html().encode())
    if request.as_json:
        print_json(to_json(comparison))
    else:
        show(Console(highlight=False, soft_wrap=False), comparison)
    return EXIT_CODES[comparison.decision]
