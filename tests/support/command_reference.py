"""Reference of commands in docs/commands.md, generated from the command line.

``python -m tests.support.command_reference`` rewrites it (``make schemas``).
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from loadgen.bench.command import OF_THEIR_OWN
from pipeline.cli import COMMANDS, smidgen
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "commands.md"
WIDTH = 88

HEAD = """# Commands

What `--help` says of each command. Every command exits 0 on success, 1 on a finding or a failed expectation,
2 on bad usage or bad input, with one line that says which. [configuration.md](configuration.md) has the
settings that most of them share. This page is written from the code: `make schemas`.

| command | |
| --- | --- |
"""


def reference() -> str:
    """Return the page: a table of all commands, and the help of each."""
    table = "".join(f"| [`{name}`](#smidgen-{name}) | {text} |\n" for name, (_, text) in COMMANDS.items())
    parts = [f"\n## smidgen {name}\n{_helps(name)}" for name in COMMANDS]
    return HEAD + table + "".join(parts)


def all_flags() -> set[str]:
    """Return the flags of all commands."""
    parent = click.Context(smidgen, info_name="smidgen")
    top = ((name, smidgen.get_command(parent, name)) for name in COMMANDS)
    commands = [entry[1] for name, command in top if command for entry in _all(name, command, parent)]
    options = [option for command in commands for option in command.params]
    return {flag for option in options for flag in (*option.opts, *option.secondary_opts)}


def _helps(name: str) -> str:
    command = smidgen.get_command(click.Context(smidgen), name)
    assert command is not None
    parent = click.Context(smidgen, info_name="smidgen", **smidgen.context_settings)
    return "".join(
        f"```\n{context.get_help()}\n```\n"
        for context in (_context(*entry) for entry in _all(name, command, parent))
    )


def _all(
    name: str, command: click.Command, parent: click.Context
) -> Iterator[tuple[str, click.Command, click.Context, list[str]]]:
    """Yield a command and its subcommands, with the names they are called by."""
    yield name, command, parent, []
    if name == "bench":
        yield from ((name, command, parent, [option]) for option in OF_THEIR_OWN)
    if isinstance(command, click.Group):
        context = click.Context(command, parent=parent, info_name=name)
        for inner in command.list_commands(context):
            subcommand = command.get_command(context, inner)
            assert subcommand is not None
            yield from _all(inner, subcommand, context)


def _context(name: str, command: click.Command, parent: click.Context, arguments: list[str]) -> click.Context:
    return command.make_context(name, arguments, parent=parent, terminal_width=WIDTH, resilient_parsing=True)


def main() -> None:
    """Rewrite the page."""
    PAGE.write_text(reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
