"""``smidgen topics``: creates the topics, says where the broker differs, and describes what they hold."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from pipeline.commands.options import settings_options
from pipeline.commands.request import option, takes
from pipeline.commands.terminal import print_lines
from pipeline.files.outputs import write_output
from pipeline.kafka import Broker, apply_topics, check_topics, shard_lines
from pipeline.model.errors import file_errors
from pipeline.settings.config import Settings


@click.group()
def topics() -> None:
    """Create, check or describe the topics of topics.yaml."""


@topics.command()
@takes
def apply(settings: Settings = settings_options("broker", "topics")) -> int:
    """Create the topics that are missing, raise partitions, and report what else differs.

    More partitions are made where topics.yaml has more than the broker. For the topics that stages write for
    one another no worker may run then, and all must be read. Nothing else that exists is changed.
    """
    done, remaining = asyncio.run(apply_topics(Broker.of(settings), settings.read_topics()))
    print_lines((*done, *remaining))
    if not done and not remaining:
        click.echo("nothing to do")
    return 1 if remaining else 0


@topics.command()
@takes
def check(settings: Settings = settings_options("broker", "topics")) -> int:
    """Print who has partitions of its own, and one line for each difference; exit 1 if there is one."""
    wanted = settings.read_topics()
    findings = asyncio.run(check_topics(Broker.of(settings), wanted))
    print_lines((*shard_lines(wanted), *findings))
    return 1 if findings else 0


@topics.command()
@takes
def schemas(
    output: Path = option(flag="-o/--output", metavar="DIR", help="Folder to write to."),
    settings: Settings = settings_options("topics", "group_prefix"),
) -> None:
    """Write asyncapi.yaml, and schemas/ with a JSON Schema of each message, and print what has changed."""
    # Loaded here: generating needs pydantic's schema generator, which the other subcommands do not.
    from pipeline.messages.schema.generate import generated_files

    for name, content in generated_files(settings.read_topics()).items():
        path = output / name
        with file_errors(path):
            if path.exists() and path.read_bytes() == content:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
        write_output(path, content)
        click.echo(path)
