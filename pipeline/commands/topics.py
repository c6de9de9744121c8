"""``smidgen topics``: creates the topics, or says where the broker differs from topics.yaml."""

from __future__ import annotations

import asyncio

import click

from pipeline.commands.options import settings_options
from pipeline.config import Settings
from pipeline.runtime.admin import apply_topics, check_topics
from pipeline.topics import load_topics


@click.group()
def topics() -> None:
    """Create or check the topics of topics.yaml."""


@topics.command()
@settings_options("broker", "topics")
def apply(settings: Settings) -> int:
    """Create the topics that are missing, and report what differs; nothing that exists is changed."""
    created, remaining = asyncio.run(apply_topics(settings.broker, load_topics(settings.topics)))
    for name in created:
        click.echo(f"{name}: created")
    for finding in remaining:
        click.echo(finding)
    if not created and not remaining:
        click.echo("nothing to do")
    return 1 if remaining else 0


@topics.command()
@settings_options("broker", "topics")
def check(settings: Settings) -> int:
    """Print one line for each difference; exit 1 if there is one."""
    findings = asyncio.run(check_topics(settings.broker, load_topics(settings.topics)))
    for finding in findings:
        click.echo(finding)
    return 1 if findings else 0
