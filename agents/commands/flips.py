"""``smidgen flips``: each difference of state in a file of flags as a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import orjson

from agents.commands.changes import until_stopped
from agents.commands.options import agent_settings, checked_by
from agents.publishing.broker import publish_once, quiet_client
from agents.source.changes import change_message
from agents.source.gates.flag_file import FlagFile, read_flags, watch
from agents.source.gates.flips import Flip, flip_changes
from pipeline.commands.terminal import escape_controls
from pipeline.files.values import duration_s_of, service_name
from pipeline.messages.inputs import change_to_json
from pipeline.model.clock import system_clock
from pipeline.settings.config import Settings
from pipeline.settings.topics import Topics

_EXAMPLES = """\b
Examples:
  smidgen flips flags.json --service shop --before flags.old.json        what a deployment of flags flips
  smidgen flips flags.json --service shop --state shop-flags.json        since the last time, as from cron
  smidgen flips flags.json --service shop --state shop-flags.json --follow 10s
  smidgen flips flags.json --service shop --before flags.old.json --dry-run
"""
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(epilog=_EXAMPLES)
@click.argument("file", metavar="FILE", type=_FILE)
@click.option(
    "--service",
    required=True,
    callback=checked_by(service_name),
    metavar="S",
    help="Service that reads the gates.",
)
@click.option("--before", type=_FILE, metavar="FILE", help="Compare with this file of flags.")
@click.option("--state", type=_FILE, metavar="FILE", help="Remembers the flags from one time to the next.")
@click.option(
    "--follow",
    "interval_s",
    metavar="DURATION",
    callback=checked_by(duration_s_of),
    help="Look at FILE this often, until Ctrl-C.",
)
@click.option("--gates", "pattern", default="*", metavar="GLOB", help="Only gates whose names match.")
@click.option("--dry-run", is_flag=True, help="Publish and remember nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print each change as one line of JSON.")
@agent_settings
def flips(
    settings: Settings,
    file: Path,
    service: str,
    before: Path | None,
    state: Path | None,
    interval_s: float | None,
    pattern: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Publish what flips in FILE, a set of flags in flagd's JSON or YAML, as changes of its gates.

    A flip is a difference in a flag's state, default variant, variants or targeting; a new flag is one, too.
    Its time is when FILE was written. The first time with --state there is nothing to compare with.
    """
    _check(before, state, interval_s)
    quiet_client(settings)
    publisher = _Publisher(settings, settings.read_topics(), service, dry_run, as_json)
    remembering = None if dry_run and interval_s is not None else state
    flag_file = FlagFile(file, remembering, service=service, pattern=pattern, clock=system_clock)
    if interval_s is not None:
        with until_stopped() as stop:
            watch(flag_file, publisher.publish, interval_s=interval_s, stop=stop)
        return
    now = flag_file.read()
    previous = read_flags(before) if before else flag_file.remembered()
    if previous is None:
        click.echo(f"{len(now)} gates; what flips from now on is published", err=True)
    elif changed := flag_file.flips(previous, now):
        publisher.publish(changed)
    else:
        click.echo("nothing flipped", err=True)
    if not dry_run:
        flag_file.remember(now)


def _check(before: Path | None, state: Path | None, interval_s: float | None) -> None:
    if before and (state or interval_s is not None):
        raise click.UsageError("--before compares once: give it without --state and --follow")
    if not (before or state or interval_s is not None):
        raise click.UsageError("give --before or --state, or --follow to watch FILE")


@dataclass(frozen=True, slots=True)
class _Publisher:
    """Publishes and shows flips."""

    settings: Settings
    topics: Topics
    service: str
    dry_run: bool
    as_json: bool

    def publish(self, found: Sequence[Flip]) -> None:
        """Publish all of them at once, or nothing if that fails."""
        changes = flip_changes(found, self.service)
        if not self.dry_run:
            publish_once([change_message(change) for change in changes], self.settings, self.topics)
        for change in changes:
            shown = orjson.dumps(change_to_json(change)).decode() if self.as_json else change.title
            click.echo(shown if self.as_json else escape_controls(shown))
