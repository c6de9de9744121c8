"""Rules: the processes to sample, the service of each, and how. The first rule that matches counts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agents.host.identity import container_id, pod_uid, resource_attributes
from agents.host.proc import ProcessFacts
from agents.sampling.kernels import AUTO, CallGraph
from pipeline.files.values import SERVICE

ADAPTIVE = "adaptive"
DEFAULT_HZ = 19.0
"""Samples a second and thread: a minute of one busy process gives a thousand."""

LOWEST_HZ = 1 / 60
HIGHEST_HZ = 1000.0

MAX_TEXT = 200
"""Longest release, label or endpoint that is taken from a process."""

_TEMPLATE = re.compile(r"\$\{([^{}]*)\}")
_ENV = "env:"

Reason = Literal["no_rule", "ignored", "no_service", "invalid_service"]
"""Why a process is not sampled."""

REASONS: Mapping[Reason, str] = {
    "no_rule": "no rule matches",
    "ignored": "a rule leaves it out",
    "no_service": "the rule finds no service for it",
    "invalid_service": "what the rule finds is no name of a service",
}


@dataclass(frozen=True, slots=True)
class Condition:
    """Condition on a process; None sets no condition. Patterns may match anywhere in a text."""

    command: re.Pattern[str] | None = None
    executable: re.Pattern[str] | None = None
    user: str | None = None  # name or number
    cgroup: re.Pattern[str] | None = None
    container: re.Pattern[str] | None = None
    environment: Mapping[str, re.Pattern[str] | None] = field(default_factory=dict)  # None: it is set

    @property
    def patterns(self) -> tuple[re.Pattern[str], ...]:
        """All patterns."""
        conditions = (self.command, self.executable, self.cgroup, self.container, *self.environment.values())
        return tuple(pattern for pattern in conditions if pattern is not None)


@dataclass(frozen=True, slots=True)
class How:
    """Settings for sampling processes."""

    rate_hz: float = DEFAULT_HZ
    adaptive: bool = False  # True: this is the first rate; later ones follow the profile's changes
    planned: bool = False  # True: this is the first rate; later ones are the controller's
    threshold: float | None = None  # gCPU ratio that is planned for; None: the controller's default
    kernel: str = AUTO
    native: bool = False
    idle: bool = False
    nonblocking: bool = False
    subprocesses: bool = False
    call_graph: CallGraph = "fp"


@dataclass(frozen=True, slots=True)
class ProcessRule:
    """A rule.

    Texts may hold ``${env:KEY}``, ``${NAME}`` of a pattern's group, and ``${service}``, ``${release}``,
    ``${region}``, ``${pod}`` and ``${container}`` as OpenTelemetry's variables and the cgroup say them.
    """

    condition: Condition = Condition()
    ignore: bool = False
    service: str = "${service}"
    release: str = "${release}"
    region: str = "${region}"
    pod: str = ""
    endpoint: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    how: How = How()


@dataclass(frozen=True, slots=True)
class Identity:
    """Properties that all samples of a message share."""

    service: str
    release: str = ""
    labels: tuple[tuple[str, str], ...] = ()  # by name


@dataclass(frozen=True, slots=True)
class SamplingTarget:
    """How and for whom a process is sampled."""

    rule: int  # from 1
    identity: Identity
    how: How
    endpoint: str = ""


@dataclass(frozen=True, slots=True)
class ProcessDecision:
    """Decision on a process: a target, or the reason why there is none."""

    target: SamplingTarget | None
    reason: Reason | None = None
    rule: int = 0  # from 1; 0 is none
    service: str = ""  # as found, even if it is no valid name


def decide(facts: ProcessFacts, rules: Sequence[ProcessRule]) -> ProcessDecision:
    """Return the decision of the first rule that matches a process."""
    for number, rule in enumerate(rules, start=1):
        groups = match(rule.condition, facts)
        if groups is not None:
            return _decide_by(rule, number, facts, groups)
    return ProcessDecision(None, "no_rule")


def match(condition: Condition, facts: ProcessFacts) -> dict[str, str] | None:
    """Return the named groups of a condition's patterns, None if the process does not meet it."""
    groups: dict[str, str] = {}
    if condition.user is not None and condition.user not in (facts.user, str(facts.user_id)):
        return None
    texts: list[tuple[re.Pattern[str] | None, str]] = [
        (condition.command, facts.command),
        (condition.executable, facts.executable),
        (condition.cgroup, facts.cgroup),
        (condition.container, container_id(facts.cgroup)),
    ]
    for key, pattern in condition.environment.items():
        if key not in facts.environment:
            return None
        texts.append((pattern, facts.environment[key]))
    for pattern, text in texts:
        if pattern is None:
            continue
        groups_match = pattern.search(text)
        if not groups_match:
            return None
        groups |= {name: value or "" for name, value in groups_match.groupdict().items()}
    return groups


def names_in(text: str) -> set[str]:
    """Return the variables that a text refers to, except those of the environment."""
    return {name for name in _TEMPLATE.findall(text) if not name.startswith(_ENV)}


KNOWN_NAMES = frozenset({"service", "release", "region", "pod", "container"})
"""Variables that texts may use without a pattern."""


def fill(text: str, environment: Mapping[str, str], known: Mapping[str, str]) -> str:
    """Replace the variables of a text by the values of a process; missing values are empty."""

    def value(reference: re.Match[str]) -> str:
        name = reference[1]
        return environment.get(name[len(_ENV) :], "") if name.startswith(_ENV) else known.get(name, "")

    return _TEMPLATE.sub(value, text).strip()


def _decide_by(
    rule: ProcessRule, number: int, facts: ProcessFacts, groups: Mapping[str, str]
) -> ProcessDecision:
    if rule.ignore:
        return ProcessDecision(None, "ignored", number)
    captured = {
        "pod": pod_uid(facts.cgroup),
        "container": container_id(facts.cgroup),
        **resource_attributes(facts.environment),
        **groups,
    }

    def filled(text: str) -> str:
        filled_text = fill(text, facts.environment, captured)
        return "".join(character if character.isprintable() else "?" for character in filled_text)[:MAX_TEXT]

    service = filled(rule.service)
    if not SERVICE.fullmatch(service):
        return ProcessDecision(None, "invalid_service" if service else "no_service", number, service)
    labels = {name: filled(text) for name, text in rule.labels.items()}
    labels |= {"region": filled(rule.region), "pod": filled(rule.pod)}
    filled_labels = tuple(sorted((name, value) for name, value in labels.items() if value))
    identity = Identity(service, filled(rule.release), filled_labels)
    return ProcessDecision(
        SamplingTarget(number, identity, rule.how, filled(rule.endpoint)), None, number, service
    )
