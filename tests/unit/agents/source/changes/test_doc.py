"""The examples of docs/changes.md and docs/webhooks.md."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from agents.commands.changes import changes
from agents.webhooks.mapping import load_service_map
from pipeline.cli import smidgen
from pipeline.messages.inputs import decode_change
from tests.support.paths import ROOT

TEXT = (ROOT / "docs" / "changes.md").read_text(encoding="utf-8")
WEBHOOKS = (ROOT / "docs" / "webhooks.md").read_text(encoding="utf-8")


def blocks(language: str, page: str = TEXT) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def test_the_plain_message_is_valid() -> None:
    (message,) = blocks("json")
    assert decode_change(message.encode()).gates == ("new_pricing",)
    (piped,) = re.findall(r"echo 'shop\|(.*?)' \|", TEXT)
    assert decode_change(piped.encode()).id == "flip-17"


def test_the_service_map_is_valid(tmp_path: Path) -> None:
    (text, *_) = blocks("yaml", WEBHOOKS)
    (tmp_path / "till").write_text("a secret of some length")
    (tmp_path / "clone").mkdir()
    for named, here in {"/run/secrets/till": "till", "/srv/clones/shop": "clone"}.items():
        assert named in text
        text = text.replace(named, str(tmp_path / here))
    path = tmp_path / "services.yaml"
    path.write_text(text)
    services = load_service_map(path, {"SHOP_WEBHOOK_SECRET": "a secret of some length"})
    assert [source.name for source in services.sources] == ["acme/shop", "acme/web/till"]


COMMANDS = [
    line
    for page in (TEXT, WEBHOOKS)
    for block in blocks("", page)
    for line in block.splitlines()
    if line.startswith("smidgen ")
]


@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_are_valid(line: str) -> None:
    _, name, *arguments = shlex.split(line, comments=True)
    command: click.Command | None = changes
    if name == "agent":
        agent = smidgen.get_command(click.Context(smidgen), name)
        assert isinstance(agent, click.Group)
        command = agent.get_command(click.Context(agent), arguments.pop(0))
    assert command
    command.make_context(name, arguments, help_option_names=["-h", "--help"])


def test_there_are_commands() -> None:
    assert len(COMMANDS) > 6
