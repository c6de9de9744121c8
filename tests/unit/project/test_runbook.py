"""The runbook names metrics, commands, flags, settings and lines that exist."""

from __future__ import annotations

import re

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


@for_every("alarm", re.findall(r"^## (.*)$", RUNBOOK, re.MULTILINE)[:-1])
def test_every_section_says_what_to_see_what_to_do_and_what_is_at_risk(alarm: str) -> None:
    if alarm == "Replay of dead letters":
        return
    section = RUNBOOK.split(f"## {alarm}\n")[1].split("\n## ")[0]
    for word in ("**Means**", "**See**", "**Do**", "**At risk**"):
        assert word in section


def test_stages_in_expressions_exist() -> None:
    assert set(re.findall(r'stage="(\w+)"', RUNBOOK)) <= set(STAGES)
