"""Classes of answered events: by rules, or by a language model that the user names."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from agents.commands.feedback.label_model import LabelModel
from agents.commands.feedback.options import events_service_option, since_option
from pipeline.analysis.feedback.labeller import Answers, Label, label, label_deeds
from pipeline.commands.options import settings_options
from pipeline.commands.request import json_option, option, takes
from pipeline.commands.tables import print_json
from pipeline.commands.terminal import print_lines
from pipeline.settings.config import Settings
from pipeline.stages.gather.reported import gather_answers
from pipeline.storage.connect import open_store


@click.command("label")
@takes
def labelling(
    service: str | None = events_service_option,
    since: float = since_option,
    endpoint: str | None = option(
        metavar="URL",
        help="OpenAI-compatible address of a model that is asked, such as http://127.0.0.1:8000/v1 (default: "
        "rules; nothing leaves this machine).",
    ),
    model: str | None = option(metavar="NAME", help="Name of the model at --endpoint."),
    login: Path | None = option(help="File with the bearer token for --endpoint."),
    as_json: bool = json_option(help="Print one event a line."),
    settings: Settings = settings_options("store"),
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
            print_json({"event": event, **_fields(classed)})
        else:
            tail = f"{classed.basis}: {classed.evidence}" if classed.evidence else classed.basis
            print_lines([f"{event}  {classed.status}  ({tail})"])


def _fields(classed: Label) -> dict[str, str]:
    return {"status": classed.status, "basis": classed.basis, "evidence": classed.evidence}


def _by_model(model: LabelModel, answers: Answers) -> Label:
    """Ask the model where there is something to read and no verdict, as the paper does."""
    by_rules = label(answers)
    if by_rules.basis == "verdict" or not answers.comments:
        return by_rules
    return model.label(answers.comments) or label_deeds(answers)
