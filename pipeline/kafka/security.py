"""Security of connections to Kafka: encryption, certificates, users."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import SecretStr

from pipeline.model.errors import ConfigError, file_errors
from pipeline.settings.config import Settings

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]


@dataclass(frozen=True, slots=True)
class KafkaSecurity:
    """Settings of a connection to Kafka: plain by default, else encrypted, with a login, or both.

    ``context`` is set if and only if the protocol is encrypted; ``mechanism``, ``username`` and ``password``
    are set if and only if it logs in.
    """

    protocol: Protocol = "PLAINTEXT"
    context: ssl.SSLContext | None = None
    mechanism: str = ""
    username: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def of(cls, settings: Settings) -> KafkaSecurity:
        """Build it from the settings, reading the certificates that they name.

        Raises:
            ConfigError: the setting that is missing, useless or wrong.
        """
        encrypted = settings.broker_security in ("ssl", "sasl_ssl")
        logs_in = settings.broker_security in ("sasl_plaintext", "sasl_ssl")
        _check_used(settings, encrypted=encrypted, logs_in=logs_in)
        return cls(
            protocol=_PROTOCOLS[settings.broker_security],
            context=_context(settings) if encrypted else None,
            mechanism=settings.sasl_mechanism.upper() if logs_in else "",
            username=_login(settings.sasl_username, "sasl_username") if logs_in else "",
            password=_login(_text(settings.sasl_password), "sasl_password") if logs_in else "",
        )

    @property
    def encrypted(self) -> bool:
        """True if the connection is encrypted."""
        return self.context is not None

    @property
    def logs_in(self) -> bool:
        """True if a user logs in."""
        return bool(self.mechanism)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of clients of aiokafka."""
        keywords: dict[str, Any] = {"security_protocol": self.protocol, "ssl_context": self.context}
        if self.logs_in:
            keywords["sasl_mechanism"] = self.mechanism
            keywords["sasl_plain_username"] = self.username
            keywords["sasl_plain_password"] = self.password
        return keywords


_PROTOCOLS: dict[str, Protocol] = {
    "plaintext": "PLAINTEXT",
    "ssl": "SSL",
    "sasl_plaintext": "SASL_PLAINTEXT",
    "sasl_ssl": "SASL_SSL",
}


def _check_used(settings: Settings, *, encrypted: bool, logs_in: bool) -> None:
    """Refuse a setting without effect: its user would expect more security than there is."""
    useless = []
    if not encrypted:
        useless += ["broker_ca", "broker_cert", "broker_key"]
    if not logs_in:
        useless += ["sasl_username", "sasl_password"]
    for key in useless:
        if getattr(settings, key):
            raise ConfigError(f"{key}: is given, but broker_security is {settings.broker_security}")
    if settings.broker_key and not settings.broker_cert:
        raise ConfigError("broker_key: is given without broker_cert")


def _context(settings: Settings) -> ssl.SSLContext:
    """Build the TLS context: certificates and host names are always checked, TLS 1.2 is the least version."""
    if settings.broker_ca:
        with file_errors(f"broker_ca: {settings.broker_ca}"):
            settings.broker_ca.open("rb").close()
    try:
        context = ssl.create_default_context(cafile=settings.broker_ca)
    except ssl.SSLError:
        raise ConfigError(f"broker_ca: {settings.broker_ca}: holds no certificate") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if settings.broker_cert:
        _show_certificate(context, settings.broker_cert, settings)
    return context


def _show_certificate(context: ssl.SSLContext, certificate: Path, settings: Settings) -> None:
    key = settings.broker_key or certificate
    for path, setting in ((certificate, "broker_cert"), (key, "broker_key")):
        with file_errors(f"{setting}: {path}"):
            path.open("rb").close()
    asked = False

    def password() -> str:  # without it, OpenSSL would ask on the terminal
        nonlocal asked
        asked = True
        return _text(settings.broker_key_password)

    try:
        context.load_cert_chain(certificate, key, password)
    except (ssl.SSLError, ValueError) as error:
        if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH":
            text = f"broker_key: {key}: is not the key of broker_cert"
        elif asked and not settings.broker_key_password:
            text = f"broker_key: {key}: is encrypted, and broker_key_password is missing"
        elif asked:
            text = f"broker_key: {key}: broker_key_password does not decrypt it"
        else:
            text = f"broker_cert: {certificate} and {key}: hold no certificate with its key"
        raise ConfigError(text) from None


def _login(text: str, key: str) -> str:
    if not text:
        raise ConfigError(f"{key}: is missing, and broker_security asks for it")
    if "\0" in text:
        raise ConfigError(f"{key}: holds a NUL character")
    return text


def _text(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret else ""
