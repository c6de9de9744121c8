"""The runbook names metrics, commands, flags, settings and lines that exist."""

from __future__ import annotations

import re
import shlex

import click

from pipeline.cli import smidgen
from pipeline.settings.config import Settings
from pipeline.stages.factory import STAGES
from pipeline.telemetry.metrics import METRICS, PREFIX
from tests.support.cases import for_every
from tests.support.command_reference import all_flags
from tests.support.paths import ROOT

NAMES = (
    "runbook.md",
    "operations.md",
    "scaling.md",
    "quotas.md",
    "guarantees.md",
    "investigate.md",
    "worker-metrics.md",
)
PAGES = {name: (ROOT / "docs" / name).read_text(encoding="utf-8") for name in NAMES}
RUNBOOK = PAGES["runbook.md"]
SOURCE = "\n".join(
    file.read_text(encoding="utf-8")
    for folder in ("pipeline", "agents")
    for file in (ROOT / folder).rglob("*.py")
)


FAMILIES = {
    PREFIX + name: {PREFIX + name + end for end in ("", "_bucket", "_sum", "_count")}
    if kind == "histogram"
    else {PREFIX + name}
    for name, (kind, _) in METRICS.items()
}
"""The names under which a page may speak of each metric."""


@for_every("page", PAGES)
def test_metrics_exist(page: str) -> None:
    named = set(re.findall(r"\bsmidgen_[a-z_]+", PAGES[page]))
    assert named <= set().union(*FAMILIES.values())


def test_every_metric_is_explained_in_the_table_of_metrics() -> None:
    table = re.findall(r"^\| (`smidgen_.*?) \|", PAGES["worker-metrics.md"], re.MULTILINE)
    named = set(re.findall(r"\bsmidgen_[a-z_]+", "\n".join(table)))
    assert [family for family, names in FAMILIES.items() if not names & named] == []


def commands(text: str) -> list[str]:
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    spans = re.findall(r"`(smidgen [^`\n]+)`", text)
    found = [re.split(r"\s{3,}", line.strip())[0] for line in [*lines, *spans] if line.startswith("smidgen ")]
    return sorted(set(found))


@for_every("line", [line for page in PAGES.values() for line in commands(page)])
def test_commands_parse(line: str) -> None:
    if "[" in line or "|" in line or "..." in line or "DIR" in line or "HOST:PORT" in line:
        return  # a form of commands, not one
    words = ["aggregate" if word == "STAGE" else word for word in shlex.split(line)[1:]]
    group: click.Command = smidgen
    while isinstance(group, click.Group) and words and not words[0].startswith("-"):
        found = group.get_command(click.Context(group, help_option_names=["-h", "--help"]), words[0])
        assert found is not None, words[0]
        group, words = found, words[1:]
    group.make_parser(click.Context(group, help_option_names=["-h", "--help"])).parse_args(list(words))


def test_settings_and_flags_in_code_exist() -> None:
    keys = {field.alias or name for name, field in Settings.model_fields.items()}
    for name in (
        "dead_letter_limit",
        "dead_letter_after",
        "dead_letter_min",
        "drain",
        "health",
        "log_format",
    ):
        assert name in keys
        assert (
            f"`{name}`" in PAGES["operations.md"] or f"`--{name.replace('_', '-')}" in PAGES["operations.md"]
        )
    flags = set(re.findall(r"`(--[a-z-]+)", "\n".join(PAGES.values())))
    assert flags <= all_flags()


QUOTED = (
    "store unavailable",
    "query refused",
    "not known yet where to go on, trying again: ",
    "stopping, most of %s is bad: %s. Nothing of this batch is acknowledged; see ",
    "send nothing usable: ",
    "no assignment yet for %s",
    "ready: %s",
    "beyond its quota: ",
    "not enough space",
    "too many parts",
    "refuses the user or its password",
    "in the future",
    "than this version of Smidgen knows",
)


@for_every("text", QUOTED)
def test_lines_that_it_quotes_are_written_by_the_code(text: str) -> None:
    assert text in SOURCE
    plain = re.split(r"%s|: $", text)[0].strip().rstrip(":")
    assert plain in " ".join(RUNBOOK.split())


def test_links_within_the_page_lead_somewhere() -> None:
    headings = re.findall(r"^## (.*)$", RUNBOOK, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    links = set(re.findall(r"\(#([^)]*)\)", RUNBOOK))
    assert links
    assert links <= anchors


@for_every("alarm", re.findall(r"^## (.*)$", RUNBOOK, re.MULTILINE)[:-1])
def test_every_section_says_what_to_see_what_to_do_and_what_is_at_risk(alarm: str) -> None:
    if alarm == "Replay of dead letters":
        return
    section = RUNBOOK.split(f"## {alarm}\n")[1].split("\n## ")[0]
    for word in ("**Means**", "**See**", "**Do**", "**At risk**"):
        assert word in section


def test_stages_in_expressions_exist() -> None:
    assert set(re.findall(r'stage="(\w+)"', RUNBOOK)) <= set(STAGES)
