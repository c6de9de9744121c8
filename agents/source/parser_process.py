"""Sources parsed in a process with bounds on time and memory: one that ends it costs only itself."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from agents.source import parser_program
from pipeline.messages.records import adapter_of
from pipeline.processes import run_bounded
from pipeline.settings.config import plain_environment

FILE_S = 5.0
"""Most processor time of one source, in seconds."""

MAX_ANSWER_BYTES = 512 * 1024**2
"""Most bytes of the answers that are read."""

MAX_ENDS = 5
"""Most sources of one call that may end the process; then the rest is left out."""

_ENDED = "ended its parser"
_FOLDER = Path(__file__).parents[2]


_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class ParserAnswer(Generic[_Value]):
    """What a function returned, or why there is no answer."""

    value: _Value | None = None
    failure: str = ""


def parse_bounded(
    function: str,
    type_: type[_Value],
    questions: Sequence[tuple[Mapping[str, Any], bytes]],
    *,
    timeout_s: float,
    file_s: float = FILE_S,
) -> list[ParserAnswer[_Value]]:
    """Return what a function answers to each question about a source, in order.

    Args:
        function: ``module:name``; it is given a question and its source, and returns what JSON can hold.
        type_: Type of its answers.
        questions: A question, as JSON can hold it, and its source.
        timeout_s: How long all may take.
        file_s: Most processor time of one source, in seconds.
    """
    program = [sys.executable, "-I", parser_program.__file__, str(_FOLDER), function, str(file_s)]
    deadline = time.monotonic() + timeout_s
    answers: list[ParserAnswer[_Value]] = []
    for _ in range(MAX_ENDS):
        left = questions[len(answers) :]
        left_s = deadline - time.monotonic()
        if not left or left_s <= 0:
            break
        heads = [{**question, "bytes": len(source)} for question, source in left]
        output = run_bounded(
            program,
            stdin=b"\n".join([json.dumps(heads).encode(), b"".join(source for _, source in left)]),
            max_bytes=MAX_ANSWER_BYTES,
            timeout_s=left_s,
            environment=plain_environment(),
        )
        lines = output.data.split(b"\n")[:-1]  # text after the last line end broke off
        answers += [decode_answer(type_, line) for line in lines[: len(left)]]
        if len(answers) < len(questions):
            answers.append(ParserAnswer(failure="could not be parsed in time" if output.cut else _ENDED))
    late = time.monotonic() >= deadline
    rest = "could not be parsed in time" if late else "too many others could not be parsed"
    return answers + [ParserAnswer(failure=rest)] * (len(questions) - len(answers))


def decode_answer(type_: type[_Value], line: bytes) -> ParserAnswer[_Value]:
    """Read a line of the program, which a source may have damaged."""
    try:
        return ParserAnswer(adapter_of(type_).validate_json(line))
    except ValidationError:
        return ParserAnswer(failure=_ENDED)
