"""A new command or bench takes two files: its module, and a line where commands or benches are listed.

Other kinds of extensions have tests of their own, which docs/architecture.md lists.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.copies import Edits, run_with

GREETING = """
import click

@click.command()
def hello():
    "Greet."
    print("hello")
"""

PROGRAM = """
import contextlib
import io
from pipeline.cli import run

with contextlib.redirect_stdout(io.StringIO()) as output:
    run({arguments})
assert output.getvalue() == "hello\\n", output.getvalue()
"""

EXTENSIONS: dict[str, Edits] = {
    "hello": {
        "pipeline/commands/hello.py": {"": GREETING},
        "pipeline/cli.py": {"COMMANDS = {": 'COMMANDS = {"hello": ("pipeline.commands.hello", "Greet."),'},
    },
    "bench hello": {
        "loadgen/bench/hello.py": {"": GREETING},
        "loadgen/bench/command.py": {
            "OF_THEIR_OWN = {": 'OF_THEIR_OWN = {"hello": ("loadgen.bench.hello", "Greet."),'
        },
    },
}


@pytest.mark.parametrize("command", EXTENSIONS)
def test_a_new_command_takes_two_files(command: str, tmp_path: Path) -> None:
    run_with(EXTENSIONS[command], PROGRAM.format(arguments=command.split()), tmp_path)
