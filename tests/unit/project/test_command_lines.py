"""Every command that a document shows is one that the command line takes."""

from __future__ import annotations

import re

import pytest

from tests.support import command_reference
from tests.support.cases import for_every
from tests.support.command_lines import command_lines, trouble
from tests.support.paths import ROOT
from tests.unit.project.test_docs import DOCUMENTS


@for_every("document", DOCUMENTS)
def test_commands_in_documents_are_taken_by_the_command_line(document: str) -> None:
    refused = {
        f"smidgen {' '.join(arguments)}: {why}"
        for arguments in command_lines(DOCUMENTS[document])
        if (why := trouble(arguments))
    }
    assert refused == set()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("```\n$ smidgen dlq list   # what is there\n```", [["dlq", "list"]]),
        (
            "```sh\nA=1 smidgen worker aggregate \\\n  --no-idempotent-producer\n```",
            [["worker", "aggregate", "--no-idempotent-producer"]],
        ),
        (
            "```\nsmidgen topics apply && smidgen store migrate | tee out\n```",
            [["topics", "apply"], ["store", "migrate"]],
        ),
        ("Ask `smidgen why\nID` of it.", [["why", "ID"]]),
        ("```\nexec smidgen worker\n```", []),
        ("It's smidgen doctor.", []),
    ],
)
def test_commands_are_found_in_blocks_and_spans(text: str, found: list[list[str]]) -> None:
    assert list(command_lines(text)) == found


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["events", "tail", "--jsn"], "No such option"),
        (["event", "tail"], "No such command"),
        (["dlq", "list", "--broker"], "requires an argument"),
        (["bench", "faults", "--broker", "rabbit"], "is not one of"),
        (["why", "ID", "--json"], ""),
    ],
)
def test_a_wrong_command_is_refused(arguments: list[str], why: str) -> None:
    assert why in trouble(arguments)
    assert bool(trouble(arguments)) == bool(why)


def test_the_reference_is_what_the_command_line_says() -> None:
    assert command_reference.PAGE.read_text(encoding="utf-8") == command_reference.reference(), (
        "run: make schemas"
    )


def test_tests_run_commands_from_the_top() -> None:
    """A command that is run by itself has ``--help`` alone, and click keeps it so for good."""
    pattern = re.compile(r"CliRunner\(\)\.invoke\(\s*(?!smidgen\b)\w+")
    found = {path.name: pattern.findall(path.read_text("utf-8")) for path in (ROOT / "tests").rglob("*.py")}
    assert {name: calls for name, calls in found.items() if calls} == {}
