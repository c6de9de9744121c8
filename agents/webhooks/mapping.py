"""The map of services: those that a repository's pushes, tags and deployments change, and secrets."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from agents.webhooks.flag_services import FlagRule, FlagServiceKind, FlagSource
from agents.webhooks.signatures import SIGNING_PREFIX, signing_key
from pipeline.files.validation import StrictModel, read_yaml, validate
from pipeline.model.errors import ConfigError

Forge = Literal["github", "gitlab"]
Occasion = Literal["branch", "tag", "environment", "gate"]
"""What deploys: a push to a branch, a tag or the release made of it, a deployment that succeeded; or the flip
of a feature flag that the forge keeps."""

MIN_SECRET = 8
"""Shortest secret, in characters: below it guessing is a matter of time."""


ServiceName = Annotated[str, Field(pattern=r"^\w[\w.:@-]{0,199}$")]


class _Rule(StrictModel):
    """What deploys one service; exactly one of branch, tag, environment and gate, each a glob."""

    service: ServiceName
    branch: str | None = None
    tag: str | None = None
    environment: str | None = None
    gate: str | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        conditions = (self.branch, self.tag, self.environment, self.gate)
        if sum(value is not None for value in conditions) != 1:
            raise ValueError("give one of branch, tag, environment and gate")
        return self


class _Signing(StrictModel):
    """Source of a secret."""

    secret_env: str | None = Field(default=None, pattern=r"^\w+$")
    secret_file: Path | None = None

    @model_validator(mode="after")
    def _one_secret(self) -> Self:
        if (self.secret_env is None) == (self.secret_file is None):
            raise ValueError("give either secret_env or secret_file")
        return self


class _Answers(StrictModel):
    """Authors who may answer events by replies, and the targets."""

    targets: tuple[str, ...] = Field(min_length=1)
    people: tuple[str, ...] = ()
    collaborators: bool = True


class _Repository(_Signing):
    """A repository as the file describes it."""

    forge: Forge
    repository_path: Path | None = None
    source_roots: tuple[str, ...] = ()
    gate_readers: tuple[str, ...] = ()
    routes: bool = False
    deploys: tuple[_Rule, ...] = Field(min_length=1)
    answers: _Answers | None = None

    @model_validator(mode="after")
    def _source_of_routes(self) -> Self:
        if self.routes and self.repository_path is None:
            raise ValueError("routes: are read from a clone, so give repository_path")
        return self


class _Tracker(_Signing):
    """A project of a tracker as the file describes it."""

    kind: Literal["jira"]
    services: tuple[ServiceName, ...] = Field(min_length=1)
    answers: _Answers


class _Flips(StrictModel):
    """Gates of a flag service that switch one service; each a glob."""

    service: ServiceName
    project: str = "*"
    environment: str = "*"
    gates: str = "*"


class _FlagService(_Signing):
    """A flag service as the file describes it."""

    kind: FlagServiceKind
    flips: tuple[_Flips, ...] = Field(min_length=1)


class _File(StrictModel):
    repositories: dict[str, _Repository] = {}
    flag_services: dict[str, _FlagService] = {}
    trackers: dict[str, _Tracker] = {}

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not (self.repositories or self.flag_services or self.trackers):
            raise ValueError("give repositories, flag_services or trackers")
        return self


@dataclass(frozen=True, slots=True)
class AnswerRights:
    """Whose replies in a repository answer events, and the targets of alerts that they are replies to."""

    targets: tuple[str, ...]
    people: tuple[str, ...] = ()  # by the names that the forge gives them
    collaborators: bool = True  # of the repository, as far as the forge says who is one


@dataclass(frozen=True, slots=True)
class WebhookSource:
    """A repository that may send webhooks. ``name`` is its full name, such as ``acme/shop``."""

    name: str
    forge: Forge
    rules: tuple[tuple[Occasion, str, str], ...]  # occasion, glob, service
    secret: str = field(repr=False)
    clone: Path | None = None
    source_roots: tuple[str, ...] = ()
    gate_readers: tuple[str, ...] = ()
    routes: bool = False  # whether changes say how near they come to the routes of the application
    answers: AnswerRights | None = None  # None: replies are not looked at

    @property
    def every_service(self) -> frozenset[str]:
        """The services that it deploys."""
        return frozenset(service for _, _, service in self.rules)

    def services(self, occasion: Occasion, name: str) -> tuple[str, ...]:
        """Return the services that a branch, tag or environment of this name deploys."""
        matching = (
            service
            for kind, glob, service in self.rules
            if kind == occasion and fnmatch.fnmatchcase(name, glob)
        )
        return tuple(dict.fromkeys(matching))


@dataclass(frozen=True, slots=True)
class Tracker:
    """A project of a tracker whose comments and closed issues are answers. ``name`` is its key."""

    name: str
    every_service: frozenset[str]  # of which answers may speak
    secret: str = field(repr=False)
    answers: AnswerRights | None


@dataclass(frozen=True, slots=True)
class ServiceMap:
    """All repositories, flag services and trackers that may send webhooks."""

    sources: tuple[WebhookSource, ...]
    flag_sources: tuple[FlagSource, ...] = ()
    trackers: tuple[Tracker, ...] = ()

    @property
    def is_answered(self) -> bool:
        """True if replies of somebody may answer events."""
        return bool(self.trackers) or any(source.answers for source in self.sources)

    def find(self, forge: Forge, name: str) -> WebhookSource | None:
        """Return a forge's repository; forges ignore the case of names."""
        wanted = name.casefold()
        return next((s for s in self.sources if s.forge == forge and s.name.casefold() == wanted), None)

    def of(self, forge: Forge) -> tuple[WebhookSource, ...]:
        """Return the repositories of one forge."""
        return tuple(source for source in self.sources if source.forge == forge)


def load_service_map(path: Path, environ: Mapping[str, str]) -> ServiceMap:
    """Read the mapping and the secrets that it names.

    Raises:
        ConfigError: the file and the key that is wrong, or the secret that is missing; never a secret.
    """
    file = validate(_File, read_yaml(path), str(path))
    sources = []
    for name, repository in file.repositories.items():
        where = f"{path}: repositories.{name}"
        sources.append(
            WebhookSource(
                name=name.strip("/"),
                forge=repository.forge,
                rules=tuple(_rule(rule) for rule in repository.deploys),
                secret=_secret(repository, environ, where),
                clone=_folder(repository.repository_path, path, where),
                source_roots=repository.source_roots,
                gate_readers=repository.gate_readers,
                routes=repository.routes,
                answers=AnswerRights(**repository.answers.model_dump()) if repository.answers else None,
            )
        )
    flag_sources = tuple(
        FlagSource(
            name=name,
            kind=service.kind,
            rules=tuple(FlagRule(**rule.model_dump()) for rule in service.flips),
            secret=_secret(service, environ, f"{path}: flag_services.{name}"),
        )
        for name, service in file.flag_services.items()
    )
    trackers = tuple(
        Tracker(
            name=name,
            every_service=frozenset(tracker.services),
            secret=_secret(tracker, environ, f"{path}: trackers.{name}"),
            answers=AnswerRights(**tracker.answers.model_dump()),
        )
        for name, tracker in file.trackers.items()
    )
    return ServiceMap(tuple(sources), flag_sources, trackers)


def _rule(rule: _Rule) -> tuple[Occasion, str, str]:
    if rule.branch is not None:
        return "branch", rule.branch, rule.service
    if rule.tag is not None:
        return "tag", rule.tag, rule.service
    if rule.gate is not None:
        return "gate", rule.gate, rule.service
    return "environment", rule.environment or "", rule.service


def _folder(clone: Path | None, file: Path, where: str) -> Path | None:
    if clone is None:
        return None
    folder = file.parent / clone.expanduser()
    if not folder.is_dir():
        raise ConfigError(f"{where}.repository_path: {folder}: no such folder")
    return folder


def _secret(repository: _Signing, environ: Mapping[str, str], where: str) -> str:
    if repository.secret_env is not None:
        origin = f"{where}.secret_env: environment {repository.secret_env}"
        secret = environ.get(repository.secret_env, "")
    else:
        secret_file = repository.secret_file or Path()
        origin = f"{where}.secret_file: {secret_file}"
        try:
            secret = secret_file.expanduser().read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{origin}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ConfigError(f"{origin}: not UTF-8 text") from None
    secret = secret.strip()
    if len(secret) < MIN_SECRET:
        raise ConfigError(
            f"{origin}: " + ("empty" if not secret else f"shorter than {MIN_SECRET} characters")
        )
    if secret.startswith(SIGNING_PREFIX) and signing_key(secret) is None:
        raise ConfigError(f"{origin}: {SIGNING_PREFIX}… should be followed by a key in base64")
    return secret
