"""``smidgen bench labeller``: precision and recall of the labeller on labelled examples."""

from __future__ import annotations

from pathlib import Path

from loadgen.evaluation.labels import ClassScore, Example, read_examples, score_labels
from loadgen.harness import Experiment, bench, lines, table
from pipeline.analysis.feedback import Share
from pipeline.analysis.feedback.labeller import label
from pipeline.commands.request import argument, option
from pipeline.commands.tables import Column


def _percent(share: Share) -> str | None:
    return f"{share.share * 100:.0f} % ({share.hits} of {share.of})" if share.of else None


COLUMNS: tuple[Column[ClassScore], ...] = (
    Column("class", "status"),
    Column("examples", lambda row: str(row.truth)),
    Column("precision", lambda row: _percent(row.precision)),
    Column("recall", lambda row: _percent(row.recall)),
)


@bench(json="one JSON object a class")
def labeller(
    path: Path = argument(metavar="FILE"),
    wrong: bool = option(help="Show each example with another class than its own."),
) -> Experiment[ClassScore] | Experiment[Example]:
    """Measure the labeller on FILE: JSON lines of status, comments, resolved and repaired_by."""
    examples = read_examples(path)
    if wrong:
        misjudged = [example for example in examples if label(example.answers).status != example.status]
        return Experiment(lambda _: misjudged, 1, lines(_wrong_line))
    return Experiment(lambda _: score_labels(examples), 1, table(COLUMNS))


def _wrong_line(example: Example) -> str:
    comments = " / ".join(example.answers.comments)
    return f"{example.status} → {label(example.answers).status}: {comments}"
