"""Subroutines that changed lines of sources touch, asked of their grammars in a process with bounds."""

from __future__ import annotations

from collections.abc import Sequence

from agents.source.parser_process import FILE_S, parse_bounded
from agents.source.syntax import Definition, Question


def read_definitions(
    questions: Sequence[Question], *, timeout_s: float, file_s: float = FILE_S
) -> list[list[Definition] | None]:
    """Answer each question, as ``syntax.touched_definitions`` does; None where there is no answer."""
    texts = [
        ({"language": question.language, "lines": list(question.lines)}, question.source)
        for question in questions
    ]
    answers = parse_bounded(
        "agents.source.syntax:answer", list[Definition], texts, timeout_s=timeout_s, file_s=file_s
    )
    return [answer.value for answer in answers]
