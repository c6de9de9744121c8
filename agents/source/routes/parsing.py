"""Java and JavaScript, parsed in a process with bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from agents.source.parser_process import Answer, parse_bounded
from agents.source.routes.java_source import JavaFile, read_java
from agents.source.routes.javascript_source import JavaScriptFile, read_javascript

ALL_S = 120.0
"""Seconds that all sources may take."""

Parsed = JavaFile | JavaScriptFile


def parse_others(sources: Mapping[str, bytes]) -> tuple[list[Parsed], dict[str, str]]:
    """Return the parsed sources of Java and JavaScript, and reasons why some could not be read."""
    questions = [({"path": path}, source) for path, source in sources.items()]
    answers: list[Answer[Parsed]] = parse_bounded(
        "agents.source.routes.parsing:answer",
        Parsed,  # type: ignore[arg-type]
        questions,
        timeout_s=ALL_S,
    )
    unread = {path: answer.failure for path, answer in zip(sources, answers, strict=True) if answer.failure}
    return [answer.value for answer in answers if answer.value], unread


def parse_one(path: str, source: bytes) -> Parsed:
    """Return what one source has."""
    return read_java(path, source) if path.endswith(".java") else read_javascript(path, source)


def answer(question: Mapping[str, Any], source: bytes) -> dict[str, Any]:
    """Answer a question of ``parser_process``, as JSON can hold it."""
    return asdict(parse_one(question["path"], source))
