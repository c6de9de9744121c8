"""The settings file of the host agent: rules, and bounds of the agent's resources."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, field_validator, model_validator

from agents.host.adaptive import FASTEST_HZ
from agents.host.rules import ADAPTIVE, HIGHEST_HZ, KNOWN_NAMES, LOWEST_HZ, Condition, How, Rule, names_in
from agents.sampling.kernels import CallGraph, kernel_names
from pipeline.files.validation import StrictModel, WrongYaml, parse_yaml, read_yaml, validate
from pipeline.files.values import share_of
from pipeline.model.errors import ConfigError
from pipeline.model.units import parse_duration_s, parse_size_bytes
from pipeline.settings.extras import require

_FRACTION = re.compile(r"\s*(\d{1,6})\s*/\s*(\d{1,6})\s*")
_PERCENT = re.compile(r"\s*(\d{1,3}(?:\.\d{1,6})?)\s*%\s*")


def parse_rate_hz(value: object) -> float:
    """Read samples a second: a number, a fraction such as 1/60, or ``adaptive``, which begins at its fastest.

    Raises:
        ValueError: it is none of them, beyond the bounds, or above 1 and not whole.
    """
    if value == ADAPTIVE:
        return FASTEST_HZ
    fraction = _FRACTION.fullmatch(value) if isinstance(value, str) else None
    rate = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
    if fraction and int(fraction[2]):
        rate = int(fraction[1]) / int(fraction[2])
    if not LOWEST_HZ <= rate <= HIGHEST_HZ or (rate > 1 and rate != int(rate)):
        raise ValueError(
            f"should be samples a second from 1/60 to {HIGHEST_HZ:g}, above 1 a whole number, or {ADAPTIVE}"
        )
    return rate


def parse_share(value: object, what: str = "a share of the host's CPU such as 1%") -> float:
    """Read a share such as ``1%``.

    Raises:
        ValueError: it is no share, or not between 0 and 100 %; the message names ``what`` it should be.
    """
    percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if not percent or not 0 < float(percent[1]) <= 100:
        raise ValueError(f"should be {what}")
    return float(percent[1]) / 100


def _pattern(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("should be a pattern")
    try:
        return re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"not a pattern: {error}") from None


_Pattern = Annotated[re.Pattern[str], BeforeValidator(_pattern)]
_Seconds = Annotated[float, BeforeValidator(parse_duration_s)]
_Bytes = Annotated[int, BeforeValidator(parse_size_bytes)]
_Share = Annotated[float, BeforeValidator(parse_share)]
_Error = Annotated[float, BeforeValidator(lambda value: parse_share(value, "an error such as 0.5%"))]
_Threshold = Annotated[float, BeforeValidator(lambda value: share_of(str(value)))]


@dataclass(frozen=True, slots=True)
class HostConfig:
    """Content of a settings file."""

    rules: tuple[Rule, ...]
    interval_s: float = 10.0
    scan_s: float = 5.0
    processes: int = 64  # sampled at once, at most
    budget: float = 0.01  # share of the host's CPU
    buffer_bytes: int = 64 * 1024**2
    spool: Path | None = None  # folder
    spool_bytes: int = 1024**3
    prune: float = 0.0  # largest error by which rare stacks are pruned; 0 prunes none


_HOST, _RULE, _HOW = HostConfig(rules=()), Rule(), How()  # its defaults are those of settings files


class _Match(StrictModel):
    """Condition on a process."""

    command: _Pattern | None = None
    executable: _Pattern | None = None
    user: str | None = None
    cgroup: _Pattern | None = None
    container: _Pattern | None = None
    environment: dict[str, _Pattern | None] = {}

    @field_validator("user", mode="before")
    @classmethod
    def _number(cls, value: object) -> object:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class _Rule(StrictModel):
    """One rule as the file has it."""

    match: _Match = _Match()
    ignore: bool = _RULE.ignore
    service: str = _RULE.service
    release: str = _RULE.release
    region: str = _RULE.region
    pod: str = _RULE.pod
    endpoint: str = _RULE.endpoint
    labels: dict[str, str] = {}
    rate: float | str | None = None
    threshold: _Threshold | None = None
    kernel: str = _HOW.kernel
    native: bool = _HOW.native
    idle: bool = _HOW.idle
    nonblocking: bool = _HOW.nonblocking
    subprocesses: bool = _HOW.subprocesses
    call_graph: CallGraph = _HOW.call_graph

    @field_validator("kernel")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in kernel_names():
            raise ValueError(f"should be one of {', '.join(kernel_names())}")
        return value

    @field_validator("rate", mode="before")
    @classmethod
    def _rate(cls, value: object) -> object:
        parse_rate_hz(value)
        return value

    @model_validator(mode="after")
    def _whole(self) -> _Rule:
        if self.rate is not None and self.threshold is not None:
            raise ValueError("a threshold is what a rate is planned for: leave out rate")
        if self.native and self.nonblocking:
            raise ValueError("native has to pause the process: leave out nonblocking")
        groups = {name for pattern in _condition(self.match).patterns for name in pattern.groupindex}
        texts = (self.service, self.release, self.region, self.pod, self.endpoint, *self.labels.values())
        for text in texts:
            if unknown := sorted(names_in(text) - groups - KNOWN_NAMES):
                raise ValueError(
                    f"${{{unknown[0]}}} is no group of the rule's patterns; without one there are env:KEY, "
                    f"{', '.join(sorted(KNOWN_NAMES))}"
                )
        return self


class _File(StrictModel):
    """The whole file."""

    interval_s: _Seconds = Field(default=_HOST.interval_s, alias="interval", ge=1, le=3600)
    scan_s: _Seconds = Field(default=_HOST.scan_s, alias="scan", ge=0.5, le=600)
    processes: int = Field(default=_HOST.processes, ge=1, le=1000)
    budget: _Share = _HOST.budget
    buffer: _Bytes = _HOST.buffer_bytes
    spool: Path | None = _HOST.spool
    spool_size: _Bytes = _HOST.spool_bytes
    prune: _Error | None = None
    rules: tuple[_Rule, ...] = Field(min_length=1)


def load_host_config(path: Path) -> HostConfig:
    """Read a settings file.

    Raises:
        ConfigError: the file and the key that is wrong.
    """
    config = _to_config(validate(_File, read_yaml(path), str(path)))
    for number, rule in enumerate(config.rules):
        if rule.how.threshold is not None:
            raise ConfigError(
                f"{path}: rules.{number}.threshold: a host does not know how many others there are: only the "
                "rules of a gateway have one"
            )
    return replace(config, spool=path.parent / config.spool.expanduser()) if config.spool else config


def parse_fleet_config(content: bytes, where: str) -> HostConfig:
    """Read the text of a settings file for many hosts, which names no folder of a host.

    Rules without a rate follow what the controller plans.

    Raises:
        ConfigError: ``where`` and the key that is wrong.
    """
    try:
        file = validate(_File, parse_yaml(content), where)
    except WrongYaml as error:
        raise ConfigError(f"{where}: {error}") from None
    if file.spool:
        raise ConfigError(
            f"{where}: spool: a fleet's rules name no folder of a host: give smidgen agent host --spool"
        )
    config = _to_config(file)
    rules = (
        replace(rule, how=replace(rule.how, planned=entry.rate is None))
        for rule, entry in zip(config.rules, file.rules, strict=True)
    )
    return replace(config, rules=tuple(rules))


def _to_config(file: _File) -> HostConfig:
    rules = tuple(_to_rule(rule) for rule in file.rules)
    if file.prune or any(rule.how.adaptive for rule in rules):
        require("scipy")  # now, and not after the first window
    return HostConfig(
        rules=rules,
        interval_s=file.interval_s,
        scan_s=file.scan_s,
        processes=file.processes,
        budget=file.budget,
        buffer_bytes=file.buffer,
        spool=file.spool,
        spool_bytes=file.spool_size,
        prune=file.prune or 0.0,
    )


def _to_rule(rule: _Rule) -> Rule:
    return Rule(
        condition=_condition(rule.match),
        ignore=rule.ignore,
        service=rule.service,
        release=rule.release,
        region=rule.region,
        pod=rule.pod,
        endpoint=rule.endpoint,
        labels=rule.labels,
        how=How(
            rate_hz=_HOW.rate_hz if rule.rate is None else parse_rate_hz(rule.rate),
            adaptive=rule.rate == ADAPTIVE,
            threshold=rule.threshold,
            kernel=rule.kernel,
            native=rule.native,
            idle=rule.idle,
            nonblocking=rule.nonblocking,
            subprocesses=rule.subprocesses,
            call_graph=rule.call_graph,
        ),
    )


def _condition(entry: _Match) -> Condition:
    environment: Mapping[str, re.Pattern[str] | None] = entry.environment
    return Condition(entry.command, entry.executable, entry.user, entry.cgroup, entry.container, environment)
