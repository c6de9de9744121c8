"""Precision and recall of the labeller on labelled examples, as in FBDetect's Table 6."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from loadgen.terminal import read_file
from pipeline.analysis.feedback import Share
from pipeline.analysis.feedback.labeller import Answers, Status, label
from pipeline.messages import fields
from pipeline.model.errors import ConfigError, InvalidMessage


@dataclass(frozen=True, slots=True)
class Example:
    """Comments and actions of people, and the class that a person assigned."""

    status: Status
    answers: Answers


@dataclass(frozen=True, slots=True)
class ClassScore:
    """Precision and recall of one class."""

    status: Status
    truth: int
    precision: Share
    recall: Share

    def to_json(self) -> dict[str, Any]:
        """Return the score as a JSON object; a share of nothing is null."""
        shares = {"precision": self.precision.share, "recall": self.recall.share}
        return {"status": self.status, "truth": self.truth, **shares}


def read_examples(path: Path) -> list[Example]:
    """Read labelled examples: JSON lines of status, comments, resolved and repaired_by.

    Raises:
        ConfigError: the examples are wrong; the text has file, line and key.
    """
    examples = []
    for number, line in enumerate(read_file(path).splitlines(), start=1):
        try:
            examples.append(_example(fields.parse_object(line)))
        except InvalidMessage as error:
            raise ConfigError(f"{path}:{number}: {error}") from None
    return examples


def score_labels(examples: Sequence[Example]) -> list[ClassScore]:
    """Return the score of each class, in the order of ``Status``."""
    pairs = [(example.status, label(example.answers).status) for example in examples]
    both, truth, assigned = Counter(pairs), Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    return [
        ClassScore(
            status,
            truth[status],
            Share(both[status, status], assigned[status]),
            Share(both[status, status], truth[status]),
        )
        for status in get_args(Status)
        if truth[status] or assigned[status]
    ]


def _example(raw: dict[str, Any]) -> Example:
    status = fields.text(raw, "status")
    if status not in get_args(Status):
        raise InvalidMessage(f"status: should be {', '.join(get_args(Status))}, not {status!r:.40}")
    answers = Answers(
        comments=tuple(fields.texts(raw, "comments")),
        repaired_by=tuple(fields.texts(raw, "repaired_by")),
        resolved=bool(raw.get("resolved")),
    )
    return Example(status, answers)  # type: ignore[arg-type]
