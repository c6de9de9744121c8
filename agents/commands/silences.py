"""``smidgen expect`` and ``smidgen mute``: regressions that are announced and so not reported."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import Any

import click
from click.core import ParameterSource

from agents.commands.options import checked_by
from agents.publishing.broker import publish_once, quiet_client
from agents.source.changes.trailers import cost_share
from pipeline.commands.options import Moment, settings_options
from pipeline.commands.terminal import escape_controls
from pipeline.files.values import service_name
from pipeline.messages.inputs import decode_feedback, encode_silence, silence_of_row, with_id
from pipeline.model import CostMeasure, Outgoing, Silence, SilenceKind
from pipeline.model.clock import system_clock, to_iso
from pipeline.model.errors import ConfigError, InvalidMessage
from pipeline.settings.config import Settings
from pipeline.storage.connect import open_store
from pipeline.storage.interface import RowQuery

_EVER = (946_684_800.0, 4_102_444_800.0)
"""The years 2000 to 2100: no message has another time."""

_METRIC_COST = re.compile(r"\+?([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*(%)?", re.ASCII)

_EXPECT_EXAMPLES = """\b
Examples:
  smidgen expect --service shop --subroutine 'shop.pricing.*' --cost 0.1% --reason 'nested rules'
  smidgen expect --service shop --change 8f2c11d0 --cost 0.2%
  smidgen expect --service shop --metric latency_p99 --cost +10% --until 7d
  smidgen expect list --service shop
  smidgen expect remove expect-5c1f
In a commit's message the same is a trailer:
  Expected-Cost: 0.1% shop.pricing.*
"""
_MUTE_EXAMPLES = """\b
Examples:
  smidgen mute --service shop --until 2h --owner ada --reason 'load test'
  smidgen mute --service shop --subroutine 'shop.search.*' --until 2026-03-01T12:00:00Z --owner ada
  smidgen mute list
  smidgen mute remove mute-5c1f
"""


def _cost(text: str, *, of_metric: bool) -> tuple[float, CostMeasure]:
    """Read a cost: a share of the CPU; of a metric a share of its level, or a number in its own unit."""
    if not of_metric:
        if share := cost_share(text.strip()):
            return share, "cpu"
        raise click.BadParameter(
            f"should be a share of the service's CPU such as 0.1%, not {text[:40]!r}; "
            "for a service-level metric give --metric",
            param_hint="--cost",
        )
    match = _METRIC_COST.fullmatch(text.strip())
    if match and (cost := float(match[1])) > 0:
        return (cost / 100, "relative") if match[2] else (cost, "metric")
    raise click.BadParameter(
        f"should be a share of the metric's level such as +10%, or a number in its unit, not {text[:40]!r}",
        param_hint="--cost",
    )


def _glob(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError("should be a subroutine, as events spell it, or a pattern such as 'shop.pricing.*'")
    return text


def _change(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise ValueError(f"should be a change's id, or its first 7 digits, not {text[:40]!r}")
    return text


def _refuse_lost(context: click.Context) -> None:
    """Refuse options that stand before a subcommand, which has its own."""
    for parameter in context.command.params:
        if parameter.name and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"{parameter.opts[0]}: give the options of {context.invoked_subcommand!r} after it", context
            )


_service = click.option("--service", callback=checked_by(service_name), metavar="S", help="Its regressions.")
_publishing = settings_options("broker", "topics", "idempotent_producer", "log_level")
_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class _Asked:
    """Options that both commands share: those of a silence, and how it is published."""

    service: str | None
    subroutine: str
    start: float | None
    end: float | None
    owner: str
    reason: str
    dry_run: bool
    as_json: bool


def _common(about: str, until: str) -> _Decorator:
    options = (
        click.option("--subroutine", callback=checked_by(_glob), metavar="P", help=about),
        click.option("--from", "start", type=Moment("after"), metavar="TIME", help="Default: now."),
        click.option("--until", "end", type=Moment("after"), metavar="TIME", help=until),
        click.option("--owner", metavar="NAME", default="", help="Who answers for it."),
        click.option("--reason", metavar="TEXT", default="", help="Why; events and `why` show it."),
        click.option("--dry-run", is_flag=True, help="Publish nothing."),
        click.option("--json", "as_json", is_flag=True, help="Print the message."),
    )

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def asking(*args: Any, **arguments: Any) -> Any:
            own = {field.name: arguments.pop(field.name) for field in fields(_Asked)}
            return command(*args, asked=_Asked(**{**own, "subroutine": own["subroutine"] or ""}), **arguments)

        decorated: Callable[..., Any] = asking
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


@click.group(invoke_without_command=True, epilog=_EXPECT_EXAMPLES)
@_service
@click.option(
    "--cost",
    metavar="SHARE",
    help="Share of the service's CPU: 0.1%. Of --metric a share of its level, +10%, or a number in its unit.",
)
@click.option(
    "--metric",
    callback=checked_by(_glob),
    metavar="P",
    help="Service-level metric that may get worse, or a pattern of names.",
)
@click.option(
    "--change", callback=checked_by(_change), metavar="ID", help="Change whose cost it is; 7 digits will do."
)
@_common(
    "Subroutine that may cost more, or a pattern of names such as 'shop.pricing.*'.",
    "Change times up to then; ISO 8601, epoch seconds, or a duration from now (default: no end).",
)
@_publishing
@click.pass_context
def expect(
    context: click.Context,
    settings: Settings,
    cost: str | None,
    metric: str | None,
    change: str | None,
    asked: _Asked,
) -> None:
    """Announce a cost: regressions are silent up to that much, and what goes beyond is reported.

    Costs of several regressions are added up. It holds for changes of level between --from and --until, or
    for what --change is suspected of, and for scans that end after now.
    """
    if context.invoked_subcommand:
        _refuse_lost(context)
        return
    if not (asked.service and cost and (asked.subroutine or change or metric)):
        raise click.UsageError("give --service, --cost, and --subroutine, --change or --metric", context)
    if metric and (asked.subroutine or change):
        raise click.UsageError("--metric: stands alone, without --subroutine and --change", context)
    now = system_clock()
    much, measure = _cost(cost, of_metric=metric is not None)
    silence = replace(
        _silence(asked, asked.service, "expected", now), cost=much, measure=measure, change=change or ""
    )
    silence = replace(silence, subroutine=metric) if metric else silence
    _publish(silence, settings, dry_run=asked.dry_run, as_json=asked.as_json)


@click.group(invoke_without_command=True, epilog=_MUTE_EXAMPLES)
@_service
@_common(
    "Subroutine or metric to mute, as events name it, or a pattern (default: the whole service).",
    "End of the mute; ISO 8601, epoch seconds, or a duration from now such as 2h.",
)
@_publishing
@click.pass_context
def mute(context: click.Context, settings: Settings, asked: _Asked) -> None:
    """Mute regressions for a while; those that are still there at the end are reported then, once.

    It holds for scans that end between --from and --until. What rises beside a muted subroutine is reported,
    and what was reported before goes on being updated and resolved.
    """
    if context.invoked_subcommand:
        _refuse_lost(context)
        return
    if not (asked.service and asked.end and asked.owner.strip()):
        raise click.UsageError("give --service, --until and --owner: a mute has an end and an owner", context)
    now = system_clock()
    if asked.end <= now:
        raise click.UsageError("--until: lies in the past", context)
    silence = _silence(asked, asked.service, "muted", now)
    _publish(silence, settings, dry_run=asked.dry_run, as_json=asked.as_json)


def _silence(options: _Asked, service: str, kind: SilenceKind, now: float) -> Silence:
    start = options.start or now
    return Silence(
        *("", service, kind, now, start, options.end, options.owner, options.subroutine),
        reason=options.reason,
    )


def _publish(silence: Silence, settings: Settings, *, dry_run: bool, as_json: bool) -> None:
    """Publish a silence under an id of its content, unless it has one, and show it."""
    silence = with_id(silence)
    value = encode_silence(silence)
    try:
        decode_feedback(value)
    except InvalidMessage as error:
        raise ConfigError(str(error)) from None
    if not dry_run:
        quiet_client(settings)
        topics = settings.read_topics()
        publish_once([Outgoing("feedback", silence.service, value)], settings, topics)
    click.echo(value.decode() if as_json else _line(silence, system_clock()))


_AMOUNTS: Mapping[CostMeasure, Callable[[float], str]] = {
    "cpu": lambda cost: f"{cost * 100:.4g} %",
    "metric": lambda cost: f"{cost:.4g} in its unit",
    "relative": lambda cost: f"{cost * 100:.4g} % of its level",
}


def _line(silence: Silence, now: float) -> str:
    """Write a silence for people: its id first."""
    about = silence.subroutine or ("the whole service" if silence.kind == "muted" else "whatever it costs")
    parts = [silence.id, silence.service, about]
    if silence.kind == "expected":
        parts.append(_AMOUNTS[silence.measure](silence.cost))
        parts += [f"of change {silence.change}"] if silence.change else []
    parts.append(f"from {_moment(silence.start)}")
    parts += [f"until {_moment(silence.end)}"] if silence.end is not None else []
    parts += [f"by {silence.owner}"] if silence.owner else []
    parts += [f"({silence.reason})"] if silence.reason else []
    if silence.removed is not None:
        parts.append(f"taken back {_moment(silence.removed)}")
    elif silence.end is not None and silence.end <= now:
        parts.append("ended")
    return escape_controls("  ".join(parts))


def _moment(epoch_s: float) -> str:
    return f"{to_iso(epoch_s)[:16].replace('T', ' ')} UTC"


def _listing(kind: SilenceKind, what: str) -> click.Command:
    @click.command("list", help=f"List {what} that hold; those of commits are in `changes`.")
    @_service
    @click.option("--all", "every", is_flag=True, help="Ended and removed ones, too.")
    @click.option("--json", "as_json", is_flag=True, help="One message a line.")
    @settings_options("store")
    def listing(settings: Settings, service: str | None, every: bool, as_json: bool) -> None:
        now = system_clock()
        silences = [silence for silence in _stored(settings, service) if silence.kind == kind]
        for silence in silences:
            over = silence.removed is not None or (silence.end is not None and silence.end <= now)
            if every or not over:
                click.echo(encode_silence(silence).decode() if as_json else _line(silence, now))

    return listing


def _removal(kind: SilenceKind, what: str) -> click.Command:
    @click.command("remove", help=f"Take back the {what} ID: what it silenced is reported.")
    @click.argument("silence_id", metavar="ID")
    @_service
    @click.option("--dry-run", is_flag=True, help="Publish nothing.")
    @click.option("--json", "as_json", is_flag=True, help="Print the message.")
    @settings_options("broker", "topics", "idempotent_producer", "log_level", "store")
    def removal(
        settings: Settings, silence_id: str, service: str | None, dry_run: bool, as_json: bool
    ) -> None:
        silences = [
            silence
            for silence in _stored(settings, service, silence_id)
            if silence.kind == kind and silence.removed is None
        ]
        if len(silences) != 1:
            named = ", ".join(f"{silence.id} of {silence.service}" for silence in silences[:5])
            raise ConfigError(
                f"{silence_id!r} could be {named}: give all of it"
                if silences
                else f"no {what} {silence_id!r}"
            )
        _publish(replace(silences[0], removed=system_clock()), settings, dry_run=dry_run, as_json=as_json)

    return removal


def _stored(settings: Settings, service: str | None, prefix: str = "") -> list[Silence]:
    with closing(open_store(settings.store)) as store:
        return [silence_of_row(row) for row in store.rows(RowQuery("silences", service, id_prefix=prefix))]


expect.add_command(_listing("expected", "expectations"))
expect.add_command(_removal("expected", "expectation"))
mute.add_command(_listing("muted", "mutes"))
mute.add_command(_removal("muted", "mute"))
