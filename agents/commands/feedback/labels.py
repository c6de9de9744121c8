"""Classes of answered events: by rules, or by a language model that the user names."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click
import orjson

from agents.commands.feedback.label_model import LabelModel
from pipeline.analysis.feedback.labeller import Answers, Label, label, label_deeds
from pipeline.commands.options import Moment, settings_options
from pipeline.commands.terminal import escape_controls
from pipeline.messages.fields import EARLIEST_S
from pipeline.settings.config import Settings
from pipeline.stages.gather.reported import gather_answers
from pipeline.storage.connect import open_store


@click.command("label")
@click.option("--service", metavar="S", help="Its events (default: of every service).")
@click.option("--since", type=Moment(), default=EARLIEST_S, help="Change times since then: 30d, or ISO 8601.")
@click.option(
    "--endpoint",
    metavar="URL",
    help="Ask a model behind this OpenAI-compatible address, such as "
    "http://127.0.0.1:8000/v1 (default: rules; nothing leaves this machine).",
)
@click.option("--model", metavar="NAME", help="Its model.")
@click.option(
    "--login", type=click.Path(path_type=Path), help="File with the bearer token that the address asks for."
)
@click.option("--json", "as_json", is_flag=True, help="One event a line.")
@settings_options("store")
def labelling(
    settings: Settings,
    service: str | None,
    since: float,
    endpoint: str | None,
    model: str | None,
    login: Path | None,
    as_json: bool,
) -> None:
    """Class events by what people wrote and did: fixed, cost shift, duplicate, and so on, with the evidence.

    An event whose class is `review` needs somebody to look into it. A model is asked where a verdict does not
    say it; what it leaves open is settled by what was done.
    """
    if bool(endpoint) != bool(model):
        raise click.UsageError("give --endpoint and --model together")
    model_used = LabelModel.of(endpoint, model, login) if endpoint and model else None
    with closing(open_store(settings.store, existing=True)) as store:
        every = gather_answers(store, service, since)
    for event, answers in every.items():
        classed = label(answers) if model_used is None else _by_model(model_used, answers)
        if as_json:
            row = {
                "event": event,
                "status": classed.status,
                "basis": classed.basis,
                "evidence": classed.evidence,
            }
            click.echo(orjson.dumps(row))
        else:
            tail = f"{classed.basis}: {classed.evidence}" if classed.evidence else classed.basis
            click.echo(escape_controls(f"{event}  {classed.status}  ({tail})"))


def _by_model(model: LabelModel, answers: Answers) -> Label:
    """Ask the model where there is something to read and no verdict, as the paper does."""
    by_rules = label(answers)
    if by_rules.basis == "verdict" or not answers.comments:
        return by_rules
    return model.label(answers.comments) or label_deeds(answers)
