"""Subroutines that changed lines of sources touch, asked of ``syntax.py`` in a process of its own."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from agents.source.changes import syntax
from agents.source.changes.syntax import Definition, Question
from pipeline.processes import run_bounded
from pipeline.settings.config import plain_environment

MAX_ANSWER_BYTES = 64 * 1024**2
"""How much of the answers is read."""

MAX_ENDS = 5
"""How many sources of one commit may end the program; then the rest is left out."""


def read_definitions(
    questions: Sequence[Question], *, timeout_s: float, file_s: float = syntax.FILE_S
) -> list[list[Definition] | None]:
    """Answer each question, as ``syntax.touched_definitions`` does; None where there is no answer.

    That is a source that took longer than ``file_s``, that ended the program in another way, or that came
    after ``timeout_s``.
    """
    deadline = time.monotonic() + timeout_s
    answers: list[list[Definition] | None] = []
    for _ in range(MAX_ENDS):
        left = questions[len(answers) :]
        left_s = deadline - time.monotonic()
        if not left or left_s <= 0:
            break
        output = run_bounded(
            [sys.executable, "-I", str(Path(syntax.__file__)), str(file_s)],
            stdin=syntax.encode_questions(left),
            max_bytes=MAX_ANSWER_BYTES,
            timeout_s=left_s,
            environment=plain_environment(),
        )
        answers += islice(syntax.decode_answers(output.data), len(left))
        if len(answers) < len(questions):
            answers.append(None)  # the one that ended it
    return answers + [None] * (len(questions) - len(answers))
