"""``smidgen expect`` and ``smidgen mute``: regressions that are announced and so not reported."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace

import click
from click.core import ParameterSource

from agents.publishing.broker import publish_once, quiet_client
from agents.source.changes.trailers import cost_share
from pipeline.commands.options import settings_options
from pipeline.commands.request import Moment, argument, json_option, option, takes
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


_service = option(parse=service_name, metavar="S", help="Service of the regressions.")
_publishing = settings_options("broker", "topics", "idempotent_producer", "log_level")
_MOMENTS = "ISO 8601, epoch seconds, or a duration from now such as 2h"


@dataclass(frozen=True, slots=True)
class _Publishing:
    """Options that both commands share."""

    owner: str = option("", metavar="NAME", help="Person who answers for it.")
    reason: str = option("", metavar="TEXT", help="Reason, which events and `why` show.")
    dry_run: bool = option(help="Publish nothing.")
    as_json: bool = json_option(help="Print the message.")


@click.group(invoke_without_command=True, epilog=_EXPECT_EXAMPLES)
@takes
@click.pass_context
def expect(
    context: click.Context,
    service: str | None = _service,
    cost: str | None = option(
        metavar="SHARE",
        help="Share of the service's CPU, 0.1%; with --metric a share of its level, +10%, or a number in its "
        "unit.",
    ),
    metric: str | None = option(
        parse=_glob, metavar="P", help="Service-level metric that may get worse, or a pattern of names."
    ),
    change: str | None = option(
        parse=_change, metavar="ID", help="Change whose cost it is; 7 digits are enough."
    ),
    subroutine: str | None = option(
        parse=_glob,
        metavar="P",
        help="Subroutine that may cost more, or a pattern of names such as 'shop.pricing.*'.",
    ),
    start: float | None = option(
        flag="--from", kind=Moment("after"), help="First change time (default: now)."
    ),
    end: float | None = option(
        flag="--until",
        kind=Moment("after"),
        help=f"Last change time; {_MOMENTS} (default: none).",
    ),
    *,
    publishing: _Publishing,
    settings: Settings = _publishing,
) -> None:
    """Announce a cost: regressions are silent up to that much, and what goes beyond is reported.

    Costs of several regressions are added up. It holds for changes of level between --from and --until, or
    for what --change is suspected of, and for scans that end after now.
    """
    if context.invoked_subcommand:
        _refuse_lost(context)
        return
    if not (service and cost and (subroutine or change or metric)):
        raise click.UsageError("give --service, --cost, and --subroutine, --change or --metric", context)
    if metric and (subroutine or change):
        raise click.UsageError("--metric: stands alone, without --subroutine and --change", context)
    now = system_clock()
    much, measure = _cost(cost, of_metric=metric is not None)
    silence = Silence(
        *("", service, "expected", now, start or now, end),
        *(publishing.owner, metric or subroutine or ""),
        cost=much,
        measure=measure,
        change=change or "",
        reason=publishing.reason,
    )
    _publish(silence, settings, dry_run=publishing.dry_run, as_json=publishing.as_json)


@click.group(invoke_without_command=True, epilog=_MUTE_EXAMPLES)
@takes
@click.pass_context
def mute(
    context: click.Context,
    service: str | None = _service,
    subroutine: str | None = option(
        parse=_glob,
        metavar="P",
        help="Subroutine or metric to mute, as events name it, or a pattern (default: the whole service).",
    ),
    start: float | None = option(
        flag="--from", kind=Moment("after"), help="Start of the mute (default: now)."
    ),
    end: float | None = option(flag="--until", kind=Moment("after"), help=f"End of the mute; {_MOMENTS}."),
    *,
    publishing: _Publishing,
    settings: Settings = _publishing,
) -> None:
    """Mute regressions for a while; those that are still there at the end are reported then, once.

    It holds for scans that end between --from and --until. What rises beside a muted subroutine is reported,
    and what was reported before goes on being updated and resolved.
    """
    if context.invoked_subcommand:
        _refuse_lost(context)
        return
    if not (service and end and publishing.owner.strip()):
        raise click.UsageError("give --service, --until and --owner: a mute has an end and an owner", context)
    now = system_clock()
    if end <= now:
        raise click.UsageError("--until: lies in the past", context)
    silence = Silence(
        *("", service, "muted", now, start or now, end),
        *(publishing.owner, subroutine or ""),
        reason=publishing.reason,
    )
    _publish(silence, settings, dry_run=publishing.dry_run, as_json=publishing.as_json)


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
    @takes
    def listing(
        service: str | None = _service,
        every: bool = option(flag="--all", help="Include ended and removed ones."),
        as_json: bool = json_option(help="Print one message a line."),
        settings: Settings = settings_options("store"),
    ) -> None:
        now = system_clock()
        silences = [silence for silence in _stored(settings, service) if silence.kind == kind]
        for silence in silences:
            over = silence.removed is not None or (silence.end is not None and silence.end <= now)
            if every or not over:
                click.echo(encode_silence(silence).decode() if as_json else _line(silence, now))

    return listing


def _removal(kind: SilenceKind, what: str) -> click.Command:
    @click.command("remove", help=f"Take back the {what} ID: what it silenced is reported.")
    @takes
    def removal(
        silence_id: str = argument(metavar="ID"),
        service: str | None = _service,
        dry_run: bool = option(help="Publish nothing."),
        as_json: bool = json_option(help="Print the message."),
        settings: Settings = settings_options(
            "broker", "topics", "idempotent_producer", "log_level", "store"
        ),
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
