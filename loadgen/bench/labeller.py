"""``smidgen bench labeller``: precision and recall of the labeller on labelled examples."""

from __future__ import annotations

from pathlib import Path

import click

from loadgen.evaluation.labels import read_examples, score_labels
from pipeline.analysis.feedback import Share
from pipeline.analysis.feedback.labeller import label
from pipeline.commands.tables import print_json


@click.command()
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--wrong", is_flag=True, help="Show each example with another class than its own.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a class.")
def labeller(path: Path, wrong: bool, as_json: bool) -> None:
    """Measure the labeller on FILE: JSON lines of status, comments, resolved and repaired_by."""
    examples = read_examples(path)
    if wrong:
        for one in examples:
            found = label(one.answers)
            if found.status != one.status:
                click.echo(f"{one.status} → {found.status}: {' / '.join(one.answers.comments)}")
        return
    scores = score_labels(examples)
    if as_json:
        for score in scores:
            shares = {"precision": score.precision.share, "recall": score.recall.share}
            print_json({"status": score.status, "truth": score.truth, **shares})
        return
    click.echo("| class | examples | precision | recall |\n| --- | --- | --- | --- |")
    for score in scores:
        shown = f"{_percent(score.precision)} | {_percent(score.recall)}"
        click.echo(f"| {score.status} | {score.truth} | {shown} |")


def _percent(one: Share) -> str:
    return f"{one.share * 100:.0f} % ({one.hits} of {one.of})" if one.of else "–"
