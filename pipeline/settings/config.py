"""Settings from file, environment and flags, in that order of rising precedence.

This is the only module that reads the environment, but for ``pipeline.http.probe``, which has to start
fast, and ``agents.inprocess``, which uses the standard library alone.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PrivateAttr, SecretStr
from pydantic.fields import FieldInfo

from pipeline.files.validation import StrictModel, read_yaml, validate
from pipeline.model.errors import ConfigError, file_errors
from pipeline.model.units import parse_duration_s, parse_size_bytes
from pipeline.settings.local import LocalPipeline, find_local, state_file
from pipeline.settings.topics import DEFAULT_PATH as DEFAULT_TOPICS
from pipeline.settings.topics import Topics, load_topics
from pipeline.settings.url_template import check_source_url

DEFAULT_FILE = Path("smidgen.yaml")
PREFIX = "SMIDGEN_"

Seconds = Annotated[float, BeforeValidator(parse_duration_s)]
_URL_PASSWORD = re.compile(r"(://[^:/@\s]*:)\S*(@)")  # greedy: a password may itself hold an @
_QUERY_PASSWORD = re.compile(r"([?&](?:password|access_token)=)[^&\s]*", re.IGNORECASE)

SECRETS = (
    "store_password",
    "broker_key_password",
    "sasl_password",
    "http_token",
    "oidc_secret",
    "receipt_key",
)
"""Settings that nobody may see: given by the environment or a file, each also as ``<key>_file``."""

_NAME_PREFIX = r"^[A-Za-z0-9._-]{0,200}$"

_ENVIRONMENT = "environment"
_COMMAND_LINE = "command line"

_NEAR = 0.8  # how similar names are of which one is taken for the other, misspelt
_SHORTEST_SECRET = 8  # a shorter one may stand in any word, and what is left of it would give it away
_LARGEST_SECRET = 64 * 1024


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


Secret = SecretStr | None
SecretFile = Path | None


class Settings(StrictModel):
    """Everything that can be configured; each field is also SMIDGEN_<FIELD> and a flag where it applies."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    broker: str = Field(default="localhost:9092", min_length=1)
    """Kafka bootstrap servers, comma-separated."""
    store: str = Field(default="http://localhost:8123", min_length=1, repr=False)  # may hold a password
    """ClickHouse DSN: http(s)://… or chdb:///path."""
    store_password: Secret = None
    """Password for the user in the DSN."""
    store_password_file: SecretFile = None
    broker_security: Annotated[
        Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"], BeforeValidator(_lower)
    ] = "plaintext"
    """How to connect to Kafka: encrypted, logged in, both, or plain."""
    broker_ca: Path | None = None
    """Certificates (PEM) that vouch for the brokers; the system's by default."""
    broker_cert: Path | None = None
    """Own certificate (PEM) to show to the brokers."""
    broker_key: Path | None = None
    """Its key, if broker_cert does not hold it too."""
    broker_key_password: Secret = None
    """What its key is encrypted with."""
    broker_key_password_file: SecretFile = None
    sasl_mechanism: Annotated[Literal["plain", "scram-sha-256", "scram-sha-512"], BeforeValidator(_lower)] = (
        "scram-sha-512"
    )
    """How to log in to Kafka."""
    sasl_username: str = ""
    """User to log in to Kafka."""
    sasl_password: Secret = None
    """Password to log in to Kafka."""
    sasl_password_file: SecretFile = None
    http_token: Secret = None
    """Bearer token that Smidgen's own HTTP endpoints ask for."""
    http_token_file: SecretFile = None
    oidc_secret: Secret = None
    """With what the dashboard shows its login provider that it is the one."""
    oidc_secret_file: SecretFile = None
    receipt_key: Secret = None
    """What receipts of dead letters are signed with; without it, all of them are believed."""
    receipt_key_file: SecretFile = None
    topics: Path = DEFAULT_TOPICS
    """Topics file."""
    topic_prefix: str = Field(default="", pattern=_NAME_PREFIX)
    """What the names of the topics begin with on the broker; each fleet on a cluster has its own."""
    group_prefix: str = Field(default="", pattern=_NAME_PREFIX)
    """What the names of the consumer groups begin with; topic_prefix and smidgen- by default."""
    instance: str = Field(default="", pattern=_NAME_PREFIX)
    """Name of a worker among those of its stages: it keeps its partitions while it restarts."""
    instance_away_s: Seconds = Field(default=60.0, alias="instance_away", ge=6, le=1800)
    """How long a worker with a name may be away before its partitions go to others."""
    workloads: tuple[str, ...] = Field(
        default=("frontfaas-large", "frontfaas-small", "ct-supply-short", "ct-supply-long", "ct-demand"),
        min_length=1,
    )
    """Workload preset or file; may be repeated."""
    stream: str = ""
    """What stands for the cluster in the names of its logs; the cluster id by default."""
    window_s: Seconds = Field(default=60.0, alias="window", gt=0)
    """Width of a gCPU window."""
    stack_window_s: Seconds = Field(default=300.0, alias="stack_window", gt=0)
    """Width of a stack window."""
    batch_size: int = Field(default=500, ge=1)
    """Most messages in one batch."""
    batch_bytes: Annotated[int, BeforeValidator(parse_size_bytes)] = Field(default=32 * 1024**2, gt=0)
    """Most bytes of messages in one batch."""
    batch_wait_s: Seconds = Field(default=1.0, alias="batch_wait", gt=0)
    """Longest wait for a full batch."""
    partition_idle_s: Seconds = Field(default=300.0, alias="partition_idle", gt=0)
    """Silence after which a partition no longer holds scans back."""
    gates: Path | None = None
    """File that maps gates to the subroutines they switch (smidgen gates)."""
    names: Path | None = None
    """File that says how frames become symbols (docs/names.md)."""
    learn_suspects: bool = True
    """Let confirmed causes weigh the evidence on suspects (docs/feedback.md)."""
    release_metrics: Path | None = None
    """File that says by which metrics releases are compared (docs/release-requests.md)."""
    source_url: Annotated[str, AfterValidator(check_source_url)] = ""
    """Where a line of source is to be seen, with {service}, {commit}, {path} and {line}."""
    quotas: Path | None = None
    """File of per-service quotas (docs/quotas.md)."""
    idempotent_producer: bool = True
    """Off for brokers without InitProducerId; the embedded one is recognised."""
    dead_letter_limit: float = Field(default=0.5, gt=0, le=1)
    """Stop once more than this share of the sources sends nothing usable; 1 never stops."""
    dead_letter_min: int = Field(default=20, ge=1)
    """Fewest dead letters before a worker stops."""
    dead_letter_after_s: Seconds = Field(default=600.0, alias="dead_letter_after", gt=0)
    """How long a source must have sent nothing usable before it counts as bad."""
    drain_s: Seconds = Field(default=5.0, alias="drain", gt=0)
    """How long a batch may take once its worker is to stop."""
    health: str = ""
    """Serve /live, /ready and /metrics there; nowhere by default."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """How much to log."""
    log_format: Literal["text", "json"] = "text"
    """Lines for people, or one JSON object a line."""

    _local: LocalPipeline | None = PrivateAttr(None)

    @property
    def local(self) -> LocalPipeline | None:
        """What ``smidgen up`` keeps running on this machine, if broker and store are those."""
        return self._local

    @property
    def token(self) -> str | None:
        """The bearer token of Smidgen's own HTTP endpoints, if they ask for one."""
        return self.http_token.get_secret_value() if self.http_token else None

    def read_topics(self) -> Topics:
        """Read the topics file; topics and groups have the names that this fleet gives them.

        Raises:
            ConfigError: the file or a prefix is wrong.
        """
        return load_topics(self.topics).of_fleet(self.topic_prefix, self.group_prefix)

    def secrets(self) -> tuple[str, ...]:
        """Return every secret long enough to be looked for in a text, also as URLs and JSON write it."""
        stored = [getattr(self, key) for key in SECRETS]
        texts = [secret.get_secret_value() for secret in stored if secret is not None]
        texts += [word for word in (_dsn_password(self.store),) if word]
        forms = {form for text in texts for form in (text, quote(text, safe=""), json.dumps(text)[1:-1])}
        return tuple(sorted((s for s in forms if len(s) >= _SHORTEST_SECRET), key=lambda s: (-len(s), s)))


def load_settings(
    flags: Mapping[str, Any],
    *,
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    local: bool = False,
) -> Settings:
    """Merge the settings file, the environment and the flags that were given.

    Flags that are None or (), and empty variables, count as not given; SMIDGEN_WORKLOADS is separated by
    commas. Without ``file``, ``smidgen.yaml`` in the working directory is read if it exists. With ``local``,
    the settings of the pipeline that ``smidgen up`` runs on this machine have the lowest precedence. They are
    used only if no source names a broker or a store.
    Secrets are read from their files, and ``store`` holds its password.

    Raises:
        ConfigError: the source and key that is wrong, or a password that a process list would show.
    """
    environ = os.environ if environ is None else environ
    chosen = file or (Path(environ[PREFIX + "CONFIG"]) if environ.get(PREFIX + "CONFIG") else None)
    path = chosen or DEFAULT_FILE
    merged = _Merged()
    merged.add(_of_file(path) if chosen or path.exists() else {}, str(path))
    merged.add(_of_environment(environ), _ENVIRONMENT)
    merged.add(
        {key: value for key, value in flags.items() if value is not None and value != ()}, _COMMAND_LINE
    )
    local_one = local_pipeline(environ) if local and not merged.values.keys() & {"broker", "store"} else None
    if local_one:
        merged.values = local_one.settings() | merged.values
    merged.check()
    merged.read_secrets()
    settings = validate(Settings, merged.values, str(path))
    settings._local = local_one
    return settings


class _Merged:
    """Settings of several sources: ``values`` by key, and ``origin``, the source of each."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.origin: dict[str, str] = {}

    def add(self, given: Mapping[str, Any], where: str) -> None:
        """Add the settings of a source, which override those of earlier sources."""
        origins = {key: f"{where} {PREFIX}{key.upper()}" if where == _ENVIRONMENT else where for key in given}
        _check_secrets(given, origins, on_command_line=where == _COMMAND_LINE)
        for key in given:  # a secret and its file replace one another
            for other in _pair(key):
                self.values.pop(other, None)
        self.values |= given
        self.origin |= origins

    def check(self) -> None:
        """Check one value at a time, so that the message names its source."""
        fields_by_key = setting_fields()
        for key, source in self.origin.items():
            if key in fields_by_key and key in self.values:
                validate(Settings, {key: self.values[key]}, source)

    def read_secrets(self) -> None:
        """Read secrets from their files, and put the store's password into its DSN."""
        for key in SECRETS:
            if secret_file := self.values.get(key + "_file"):
                where = f"{self.origin[key + '_file']}: {key}_file"
                self.values[key] = read_secret(Path(secret_file), where)
        if self.values.get("store_password"):
            self.values["store"] = _with_password(self.values, self.origin)


def local_pipeline(environ: Mapping[str, str] | None = None) -> LocalPipeline | None:
    """Return the pipeline that ``smidgen up`` runs on this machine; None without one."""
    return find_local(local_state_file(environ))


def local_state_file(environ: Mapping[str, str] | None = None) -> Path:
    """Return the path of the file in which ``smidgen up`` writes its addresses."""
    return state_file(os.environ if environ is None else environ)


def strange_variables(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return variables that look like misspelt settings, each with the nearest setting.

    Variables without a similar setting are left out: others use the prefix too, such as Kubernetes for its
    services.
    """
    settings = [PREFIX + key.upper() for key in (*setting_fields(), "config")]
    named = [name for name in (os.environ if environ is None else environ) if name.startswith(PREFIX)]
    strange = [name for name in named if name not in settings]
    return {name: near[0] for name in strange if (near := get_close_matches(name, settings, 1, _NEAR))}


def setting_fields() -> dict[str, FieldInfo]:
    """Return the settings by their spelling in a file."""
    return {field.alias or name: field for name, field in Settings.model_fields.items()}


def read_secret(path: Path, where: str) -> str:
    """Read a secret from a file; the line end after it does not belong to it.

    Raises:
        ConfigError: ``where: path: what is wrong``; the text holds nothing of the file.
    """
    try:
        with file_errors(f"{where}: {path}"), path.open(encoding="utf-8") as file:
            text = file.read(_LARGEST_SECRET + 1)
    except UnicodeDecodeError:
        raise ConfigError(f"{where}: {path}: not UTF-8 text") from None
    secret = text.removesuffix("\n")
    if not secret or "\n" in secret or len(secret) > _LARGEST_SECRET:
        raise ConfigError(f"{where}: {path}: should hold one line")
    return secret


def redact(text: str) -> str:
    """Hide the password of every URL in a text that a person may see."""
    return _QUERY_PASSWORD.sub(r"\1***", _URL_PASSWORD.sub(r"\1***\2", text))


def hidden(text: str, secrets: Iterable[str]) -> str:
    """Hide secrets (``Settings.secrets``), and the password of every URL, in a text that a person may see."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return redact(text)


_PLAIN = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "LD_LIBRARY_PATH")


def plain_environment() -> dict[str, str]:
    """Return the least environment for a program that reads untrusted input.

    So the input cannot make the program print or send a secret, of Smidgen or of others.
    """
    return {name: os.environ[name] for name in _PLAIN if name in os.environ}


def environment_of_others() -> dict[str, str]:
    """Return the environment for a program that is not Smidgen's: without its secrets."""
    secret = {PREFIX + key.upper() for key in SECRETS}
    if _dsn_password(os.environ.get(PREFIX + "STORE")):
        secret.add(PREFIX + "STORE")
    return {name: value for name, value in os.environ.items() if name not in secret}


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _of_file(path: Path) -> dict[str, Any]:
    raw = read_yaml(path) or {}
    if not isinstance(raw, dict) or not all(isinstance(key, str) for key in raw):
        raise ConfigError(f"{path}: should be a mapping of settings")
    return raw


def _of_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    texts = {key: environ.get(PREFIX + key.upper(), "") for key in setting_fields()}
    return {key: _split(text) if key == "workloads" else text for key, text in texts.items() if text}


def _check_secrets(given: Mapping[str, Any], origins: Mapping[str, str], *, on_command_line: bool) -> None:
    for key in SECRETS:
        if given.get(key) and given.get(key + "_file"):
            raise ConfigError(f"{origins[key]}: give one of {key} and {key}_file")
        if on_command_line and given.get(key):
            raise ConfigError(f"command line: {key}: process lists would show it")
    if on_command_line and _dsn_password(given.get("store")):
        raise ConfigError(
            "command line: store: process lists would show its password: "
            f"give it in {PREFIX}STORE, {PREFIX}STORE_PASSWORD or a file that store_password_file names"
        )


def _pair(key: str) -> tuple[str, ...]:
    secret = key.removesuffix("_file")
    return (secret, secret + "_file") if secret in SECRETS else ()


def _dsn_password(dsn: object) -> str:
    """Return the password of a URL; "" without one, or if the text is no URL."""
    try:
        return unquote(urlsplit(str(dsn or "")).password or "")
    except ValueError:
        return ""


def _with_password(merged: Mapping[str, Any], origin: Mapping[str, str]) -> str:
    """Return the DSN with the password from ``store_password``."""
    dsn = str(merged.get("store") or Settings().store)
    try:
        parts = urlsplit(dsn)
    except ValueError:  # said when it is opened
        return dsn
    if parts.scheme not in ("http", "https"):
        return dsn
    if parts.password:
        raise ConfigError(f"{origin['store']}: store: holds a password, and store_password is given too")
    user, _, address = parts.netloc.rpartition("@")
    password = quote(str(merged["store_password"]), safe="")
    return urlunsplit(parts._replace(netloc=f"{user.removesuffix(':')}:{password}@{address}"))
