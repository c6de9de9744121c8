"""The file of rules: the example of the document, every key in it explained, mistakes named, secrets kept."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import BaseModel

from pipeline.delivery.alerts import load_rules
from pipeline.delivery.alerts.delivery import deliveries
from pipeline.delivery.alerts.rules import AlertRule, Unanswered
from pipeline.delivery.alerts.rules_file import _CodeOwners, _File
from pipeline.delivery.alerts.schedule import Digest, Limit, QuietHours
from pipeline.delivery.alerts.targets import KINDS
from pipeline.model.errors import ConfigError
from tests.support.alert_events import NOW, alert
from tests.support.paths import ROOT

EXAMPLES = ROOT / "docs" / "examples"
ENVIRON = {
    "SLACK_BOT_TOKEN": "xoxb-secret",
    "PAGERDUTY_ROUTING_KEY": "pager-secret",
    "GITHUB_TOKEN": "github-secret",
}


@pytest.fixture
def example(tmp_path: Path) -> Path:
    folder = shutil.copytree(EXAMPLES, tmp_path / "examples")
    (folder / "mail-password").write_text("mail-secret\n")
    return folder / "alerts.yaml"


def test_the_example_is_loaded_with_its_secrets_and_owners(example: Path) -> None:
    rules = load_rules(example, ENVIRON)
    assert sorted(rules.secrets) == [
        "github-secret",
        "github-secret",
        "mail-secret",
        "pager-secret",
        "xoxb-secret",
    ]
    assert not any(secret in repr(rules.targets) for secret in rules.secrets)
    assert rules.owners.of(alert()) == ("@acme/pricing",)
    assert rules.owners.of(alert(metric="other.f")) == ("@acme/pricing",)  # of the suspect's file


@pytest.mark.parametrize(
    ("waste", "relative", "wanted"),
    [
        (60.0, 0.0001, {"shop", "issues", "pull-request", "on-call", "platform"}),
        (1.0, 1 / 3, {"shop", "platform"}),
        (1.0, 0.0001, {"platform"}),
    ],
)
def test_the_rules_of_the_example_do_what_they_look_like(
    example: Path, waste: float, relative: float, wanted: set[str]
) -> None:
    rules = load_rules(example, ENVIRON)
    found = alert(waste_servers=waste, after=0.06 * (1 + relative))
    found = replace(found, owners=rules.owners.of(found))
    assert {each.target for each in deliveries(rules.plan, found, 0, (), NOW)} == wanted


MODELS: list[type[BaseModel]] = [
    _File,
    _CodeOwners,
    AlertRule,
    Unanswered,
    QuietHours,
    Digest,
    Limit,
    *KINDS.values(),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_the_document_explains_every_key(model: type[BaseModel]) -> None:
    text = (ROOT / "docs" / "alerts.md").read_text()
    keys = {field.alias or name for name, field in model.model_fields.items()}
    assert {key for key in keys if f"`{key}`" not in text} == set()


def test_the_document_lists_every_kind() -> None:
    text = (ROOT / "docs" / "alerts.md").read_text()
    assert {kind for kind in KINDS if f"`{kind}`" not in text} == set()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("targets: {}\nrules: []", "targets: should hold at least 1"),
        (
            "targets: {a: {kind: pigeon}}\nrules: [{to: [a]}]",
            "targets.a: kind: should be one of alertmanager",
        ),
        (
            "targets: {a: {kind: webhook, url: 'http://x'}}\nrules: [{to: [b]}]",
            "rules.0: no target 'b'; there are a",
        ),
        ("targets: {a: {kind: webhook, url: 'ftp://x'}}\nrules: [{to: [a]}]", "targets.a: url"),
        ("targets: {a: {kind: teams, webhook: {env: NONE}}}\nrules: [{to: [a]}]", "environment NONE: empty"),
        ("targets: {a: {kind: teams, webhook: {file: none}}}\nrules: [{to: [a]}]", "none: No such file"),
        ("targets: {a: {kind: teams, webhook: x}}\nrules: [{to: [a]}]", "webhook: a secret: give it as"),
        (
            "time_zone: Mars\ntargets: {a: {kind: teams}}\nrules: [{to: [a]}]",
            "time_zone: no time zone 'Mars'",
        ),
        ("targets: {a: {kind: teams}}\nrules: [{to: [a]}]\ncolour: red", "colour: unknown key; known keys"),
        ("[]", "should be a mapping"),
    ],
)
def test_a_mistake_is_named_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "alerts.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_rules(tmp_path / "alerts.yaml", {})
    assert said in str(caught.value)
    assert str(tmp_path) in str(caught.value)
