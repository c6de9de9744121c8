"""Command lines of Smidgen in documents, and their interpretation by the command line itself."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

import click

from pipeline.cli import smidgen

_BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)`(smidgen [^`]+)`(?!`)")
_ENDS = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "2>", "<"})
"""Tokens of a shell after which the command is over."""


def command_lines(text: str) -> Iterator[list[str]]:
    """Yield the arguments of every ``smidgen`` command in the blocks and spans of a Markdown text."""
    yield from typed_lines(text)
    for span in _SPAN.findall(_BLOCK.sub("", text)):
        yield from _commands(" ".join(span.split()))


def typed_lines(text: str) -> Iterator[list[str]]:
    """Yield the commands of blocks alone, which people type; text after three spaces is a remark."""
    for block in _BLOCK.findall(text):
        for line in re.sub(r"\\\n\s*", " ", block).splitlines():
            yield from _commands(re.split(r"(?<=\S)\s{3,}", line)[0])


def trouble(arguments: Sequence[str]) -> str:
    """Return the reason for which the command line refuses arguments, or nothing; nothing is run or read."""
    command: click.Command = smidgen
    context = click.Context(smidgen, info_name="smidgen", **smidgen.context_settings)
    left = list(arguments)
    while isinstance(command, click.Group) and left and not left[0].startswith("-"):
        try:
            name, subcommand, left = command.resolve_command(context, left)
        except click.UsageError as error:
            return error.format_message()
        assert subcommand is not None
        command, context = subcommand, click.Context(subcommand, parent=context, info_name=name)
    # `bench NAME` is a command of its own for some names, and knows only with all arguments which.
    chosen = command.make_context(
        str(context.info_name), list(left), parent=context.parent, resilient_parsing=True
    )
    if chosen.command is not command:
        left.remove(str(chosen.info_name).split()[-1])
    try:
        options, _, _ = chosen.command.make_parser(context).parse_args(left)
        for parameter in chosen.command.params:
            if isinstance(parameter.type, click.Choice) and options.get(parameter.name or "") is not None:
                parameter.type_cast_value(context, options[parameter.name or ""])
    except click.UsageError as error:
        return error.format_message()
    return ""


def _commands(line: str) -> Iterator[list[str]]:
    """Yield the arguments of each command in a line of a shell; a synopsis with brackets has none."""
    try:
        tokens = list(_tokens(line))
    except ValueError:  # prose with an apostrophe
        return
    while "smidgen" in [name.rpartition("/")[2] for name in tokens]:
        start = [name.rpartition("/")[2] for name in tokens].index("smidgen")
        end = next((n for n in range(start, len(tokens)) if tokens[n] in _ENDS), len(tokens))
        if starts_command(tokens[:start]):
            yield tokens[start + 1 : end]
        tokens = tokens[end + 1 :]


def starts_command(before: Sequence[str]) -> bool:
    """Return whether a command may follow these words: a prompt, settings, or another command's end."""
    return all(word in {"$", "sudo"} or re.fullmatch(r"[A-Z_]+=.*", word) for word in before) or (
        before[-1] in _ENDS
    )


def _tokens(line: str) -> Iterator[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    for token in lexer:
        if token.startswith("#"):
            return
        yield token
