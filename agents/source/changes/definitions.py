"""Subroutines that changed lines of sources touch, asked of their grammars in a process with bounds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agents.source.parser_process import FILE_S, parse_bounded
from agents.source.syntax import Definition, Question

_ANSWER = "agents.source.syntax:answer"


def read_definitions(
    questions: Sequence[Question], *, timeout_s: float, file_s: float = FILE_S
) -> list[list[Definition] | None]:
    """Answer each question, as ``syntax.touched_definitions`` does; None where there is no answer."""
    texts = [
        ({"language": question.language, "lines": list(question.lines)}, question.source)
        for question in questions
    ]
    answers = parse_bounded(_ANSWER, texts, timeout_s=timeout_s, file_s=file_s)
    return [decode_answer(answer.data) for answer in answers]


def decode_answer(line: bytes) -> list[Definition] | None:
    """Read an answer of ``syntax.answer``, None for nonsense."""
    try:
        return [_definition(fields) for fields in json.loads(line)]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def _definition(fields: Mapping[str, Any]) -> Definition:
    name, receiver, package = (str(fields.get(key, "")) for key in ("name", "receiver", "package"))
    return Definition(name, tuple(str(part) for part in fields.get("scope", ())), receiver, package)
