"""``smidgen flips``: each difference of state in a file of flags as a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from agents.commands.options import agent_settings
from agents.publishing.broker import publish_once, quiet_client
from agents.source.changes import change_message
from agents.source.gates.flag_file import FlagFile, read_flags, watch
from agents.source.gates.flips import Flip, flip_changes
from pipeline.commands.request import FILE, argument, json_option, option, takes
from pipeline.commands.tables import print_json_lines
from pipeline.commands.terminal import print_lines
from pipeline.files.values import duration_s_of, service_name
from pipeline.messages.inputs import change_to_json
from pipeline.model.clock import system_clock
from pipeline.processes import until_stopped
from pipeline.settings.config import Settings
from pipeline.settings.topics import Topics

_EXAMPLES = """\b
Examples:
  smidgen flips flags.json --service shop --before flags.old.json        what a deployment of flags flips
  smidgen flips flags.json --service shop --state shop-flags.json        since the last time, as from cron
  smidgen flips flags.json --service shop --state shop-flags.json --follow 10s
  smidgen flips flags.json --service shop --before flags.old.json --dry-run
"""


@dataclass(frozen=True, slots=True)
class _FlipsRequest:
    file: Path = argument(FILE)
    service: str = option(parse=service_name, metavar="S", help="Service that reads the gates.")
    before: Path | None = option(kind=FILE, help="File of flags to compare with.")
    state: Path | None = option(kind=FILE, help="File that remembers the flags from one time to the next.")
    interval_s: float | None = option(
        flag="--follow",
        parse=duration_s_of,
        metavar="DURATION",
        help="Interval at which FILE is read, until Ctrl-C.",
    )
    pattern: str = option("*", flag="--gates", metavar="GLOB", help="Names of the gates that are read.")
    dry_run: bool = option(help="Publish and remember nothing.")
    as_json: bool = json_option(help="Print each change as one line of JSON.")

    def __post_init__(self) -> None:
        """Refuse options that exclude or miss each other."""
        if self.before and (self.state or self.interval_s is not None):
            raise click.UsageError("--before compares once: give it without --state and --follow")
        if not (self.before or self.state or self.interval_s is not None):
            raise click.UsageError("give --before or --state, or --follow to watch FILE")


@click.command(epilog=_EXAMPLES)
@takes
def flips(request: _FlipsRequest, settings: Settings = agent_settings) -> None:
    """Publish what flips in FILE, a set of flags in flagd's JSON or YAML, as changes of its gates.

    A flip is a difference in a flag's state, default variant, variants or targeting; a new flag is one, too.
    Its time is when FILE was written. The first time with --state there is nothing to compare with.
    """
    quiet_client(settings)
    publisher = _Publisher(request, settings, settings.read_topics())
    remembering = None if request.dry_run and request.interval_s is not None else request.state
    flag_file = FlagFile(
        request.file, remembering, service=request.service, pattern=request.pattern, clock=system_clock
    )
    if request.interval_s is not None:
        with until_stopped() as stop:
            watch(flag_file, publisher.publish, interval_s=request.interval_s, stop=stop)
        return
    now = flag_file.read()
    previous = read_flags(request.before) if request.before else flag_file.remembered()
    if previous is None:
        click.echo(f"{len(now)} gates; what flips from now on is published", err=True)
    elif changed := flag_file.flips(previous, now):
        publisher.publish(changed)
    else:
        click.echo("nothing flipped", err=True)
    if not request.dry_run:
        flag_file.remember(now)


@dataclass(frozen=True, slots=True)
class _Publisher:
    """Publishes and shows flips."""

    request: _FlipsRequest
    settings: Settings
    topics: Topics

    def publish(self, flips: Sequence[Flip]) -> None:
        """Publish all of them at once, or nothing if that fails."""
        changes = flip_changes(flips, self.request.service)
        if not self.request.dry_run:
            publish_once([change_message(change) for change in changes], self.settings, self.topics)
        if self.request.as_json:
            print_json_lines(map(change_to_json, changes))
        else:
            print_lines(change.title for change in changes)
