"""Settings of security: where secrets come from and do not go, and what certificates are refused."""

from __future__ import annotations

import io
import json
import logging
import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml
from aiohttp.http_exceptions import BadHttpMessage

from agents.publishing.broker import check_broker
from pipeline.cli import smidgen
from pipeline.commands.options import configure_logging
from pipeline.kafka import Broker, KafkaSecurity, bootstrap_servers
from pipeline.model.errors import ConfigError
from pipeline.settings.config import SECRETS, Settings, environment_of_others, load_settings
from tests.support.certificates import Authority, Certificate

SECRET = "correct horse:b@ttery/staple"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No smidgen.yaml of the developer takes part."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def certificate(authority: Authority) -> Certificate:
    return authority.issue("smidgen")


def commands(group: click.Group) -> Iterator[click.Command]:
    context = click.Context(group, help_option_names=["-h", "--help"])
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command)
        yield command


def secret_file(folder: Path, text: str = SECRET + "\n") -> Path:
    path = folder / "secret"
    path.write_text(text, encoding="utf-8")
    return path


class TestSecretsOfSettings:
    @pytest.mark.parametrize("key", SECRETS)
    def test_they_come_from_the_environment_a_file_or_a_file_that_is_named(
        self, tmp_path: Path, key: str
    ) -> None:
        named = secret_file(tmp_path)
        file = tmp_path / "s.yaml"
        file.write_text(yaml.safe_dump({key: SECRET}))
        by_file = tmp_path / "f.yaml"
        by_file.write_text(yaml.safe_dump({f"{key}_file": str(named)}))
        variable = f"SMIDGEN_{key.upper()}"
        for settings in (
            load_settings({}, environ={variable: SECRET}),
            load_settings({}, environ={f"{variable}_FILE": str(named)}),
            load_settings({}, environ={}, file=file),
            load_settings({}, environ={}, file=by_file),
            load_settings({}, environ={variable: SECRET}, file=by_file),
        ):
            assert getattr(settings, key).get_secret_value() == SECRET
            assert SECRET not in f"{settings} {settings!r}"
            assert SECRET in settings.secrets()

    @pytest.mark.parametrize("key", SECRETS)
    def test_never_from_the_command_line(self, key: str) -> None:
        with pytest.raises(ConfigError, match="process lists would show it") as raised:
            load_settings({key: SECRET}, environ={})
        assert SECRET not in str(raised.value)

    def test_no_command_has_a_flag_for_one(self) -> None:
        flags = {flag for command in commands(smidgen) for p in command.params for flag in p.opts}
        assert "--broker" in flags
        assert [flag for flag in flags if re.search("password|token|secret", flag)] == []

    @pytest.mark.parametrize(
        "store", ["http://me:hunter22@host:8123/db", "https://:hunter22@host", "http://me:hunter%3222@host"]
    )
    def test_a_password_in_the_dsn_of_a_flag_is_refused(self, store: str) -> None:
        with pytest.raises(ConfigError, match="process lists would show its password") as raised:
            load_settings({"store": store}, environ={})
        assert "hunter" not in str(raised.value)
        assert load_settings({}, environ={"SMIDGEN_STORE": store}).store == store

    def test_one_way_to_give_it_is_enough(self, tmp_path: Path) -> None:
        environ = {"SMIDGEN_SASL_PASSWORD": SECRET, "SMIDGEN_SASL_PASSWORD_FILE": str(secret_file(tmp_path))}
        with pytest.raises(ConfigError, match="give one of sasl_password and sasl_password_file"):
            load_settings({}, environ=environ)

    @pytest.mark.parametrize(
        ("text", "reason"),
        [(None, "No such file"), ("", "one line"), ("\n", "one line"), ("a\nb\n", "one line")],
        ids=["missing", "empty", "only a line end", "two lines"],
    )
    def test_a_file_without_a_secret_is_named(self, tmp_path: Path, text: str | None, reason: str) -> None:
        path = tmp_path / "secret"
        if text is not None:
            path.write_text(text)
        with pytest.raises(ConfigError) as raised:
            load_settings({}, environ={"SMIDGEN_SASL_PASSWORD_FILE": str(path)})
        assert str(raised.value).startswith(
            f"environment SMIDGEN_SASL_PASSWORD_FILE: sasl_password_file: {path}: "
        )
        assert reason in str(raised.value)

    def test_a_file_of_bytes_is_no_secret(self, tmp_path: Path) -> None:
        path = tmp_path / "secret"
        path.write_bytes(b"\xff\xfe")
        with pytest.raises(ConfigError, match="not UTF-8"):
            load_settings({}, environ={"SMIDGEN_HTTP_TOKEN_FILE": str(path)})

    def test_a_file_as_large_as_a_disk_is_not_read_to_its_end(self) -> None:
        with pytest.raises(ConfigError, match="one line"):
            load_settings({}, environ={"SMIDGEN_HTTP_TOKEN_FILE": "/dev/zero"})

    @pytest.mark.parametrize(
        ("dsn", "whole"),
        [
            ("http://me@host:8123/db?verify=false", "http://me:p%40ss%2Fw%3Ard@host:8123/db?verify=false"),
            ("https://host/db", "https://:p%40ss%2Fw%3Ard@host/db"),
            ("https://me:@host/db", "https://me:p%40ss%2Fw%3Ard@host/db"),
            ("chdb://memory", "chdb://memory"),
        ],
    )
    def test_the_password_of_the_store_joins_the_dsn(self, dsn: str, whole: str) -> None:
        settings = load_settings({"store": dsn}, environ={"SMIDGEN_STORE_PASSWORD": "p@ss/w:rd"})
        assert settings.store == whole

    def test_two_passwords_for_one_store_are_one_too_many(self) -> None:
        environ = {"SMIDGEN_STORE": "http://me:one@host", "SMIDGEN_STORE_PASSWORD": "hunter22"}
        with pytest.raises(ConfigError, match="store_password is given too") as raised:
            load_settings({}, environ=environ)
        assert "hunter" not in str(raised.value)

    def test_a_short_secret_is_not_looked_for_in_words(self) -> None:
        assert load_settings({}, environ={"SMIDGEN_HTTP_TOKEN": "smidgen"}).secrets() == ()

    def test_other_programs_inherit_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for key in (*SECRETS, "sasl_password_file", "broker"):
            monkeypatch.setenv(f"SMIDGEN_{key.upper()}", SECRET)
        monkeypatch.setenv("SMIDGEN_STORE", "http://me:hunter22@host")
        found = environment_of_others()
        names = {name for name in found if name.startswith("SMIDGEN_")}
        assert names == {"SMIDGEN_SASL_PASSWORD_FILE", "SMIDGEN_BROKER"}
        assert found["PATH"]
        monkeypatch.setenv("SMIDGEN_STORE", "http://me@host")
        assert environment_of_others()["SMIDGEN_STORE"] == "http://me@host"


class TestLogs:
    def test_what_is_no_http_costs_one_line(self) -> None:
        before = logging.getLogger().handlers[:]
        try:
            configure_logging(load_settings({}, environ={}))
            handler = logging.getLogger().handlers[0]
            assert isinstance(handler, logging.StreamHandler)
            handler.setStream(written := io.StringIO())
            for error in (BadHttpMessage("no\n  method"), RuntimeError("a mistake of ours")):
                logging.getLogger("aiohttp.server").error("From %s", "a", exc_info=error)
        finally:
            logging.basicConfig(handlers=before, force=True)
        first, second, *traceback = written.getvalue().splitlines()
        assert first.endswith("WARNING aiohttp.server From a: 400, message: no method")
        assert second.endswith("ERROR aiohttp.server From a")
        assert traceback[-1] == "RuntimeError: a mistake of ours"

    @pytest.mark.parametrize("form", ["text", "json"])
    def test_a_line_of_any_library_holds_no_secret(
        self, form: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        odd = 'quo"te\\slash/and more'
        environ = {
            "SMIDGEN_SASL_PASSWORD": odd,
            "SMIDGEN_STORE": "http://me:hunter%2F222@host",
            "SMIDGEN_LOG_FORMAT": form,
        }
        before = logging.getLogger().handlers[:]
        try:
            configure_logging(load_settings({}, environ=environ))
            handler = logging.getLogger().handlers[0]
            assert isinstance(handler, logging.StreamHandler)
            handler.setStream(written := io.StringIO())
            logger = logging.getLogger("some.library")
            logger.warning("sends %s and %s to %s", odd, "hunter/222", "http://x:other@y")
            try:
                raise RuntimeError(f"cannot log in with {odd}, {environ['SMIDGEN_STORE']}")
            except RuntimeError:
                logger.exception("failed")
        finally:
            logging.basicConfig(handlers=before, force=True)
        text = written.getvalue()
        assert "sends *** and *** to http://x:***@y" in text
        assert "cannot log in with ***, http://me:***@host" in text
        for word in (odd, json.dumps(odd)[1:-1], "hunter", "other"):
            assert word not in text
        if form == "json":
            assert [json.loads(line)["level"] for line in text.splitlines()] == ["warning", "error"]


class TestKafkaSecurity:
    def settings(self, **given: object) -> Settings:
        return load_settings({}, environ={f"SMIDGEN_{k.upper()}": str(v) for k, v in given.items()})

    def test_without_settings_it_is_plain(self) -> None:
        assert KafkaSecurity.of(Settings()) == KafkaSecurity()
        assert Broker.of(Settings()).arguments() == {
            "bootstrap_servers": ["localhost:9092"],
            "security_protocol": "PLAINTEXT",
            "ssl_context": None,
        }

    def test_certificates_and_host_names_are_always_checked(self, authority: Authority) -> None:
        found = KafkaSecurity.of(self.settings(broker_security="ssl", broker_ca=authority.certificate))
        assert found.context is not None
        assert found.context.verify_mode is ssl.CERT_REQUIRED
        assert found.context.check_hostname
        assert found.context.minimum_version is ssl.TLSVersion.TLSv1_2
        assert not found.logs_in

    def test_a_login_goes_to_the_client_and_into_no_text(self) -> None:
        found = KafkaSecurity.of(
            self.settings(broker_security="sasl_plaintext", sasl_username="me", sasl_password=SECRET)
        )
        assert found.arguments() == {
            "security_protocol": "SASL_PLAINTEXT",
            "ssl_context": None,
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": "me",
            "sasl_plain_password": SECRET,
        }
        assert SECRET not in f"{found} {found!r} {Broker(('a:1',), found)} {Broker(('a:1',), found)!r}"

    @pytest.mark.parametrize("guarded", ["", "keypass"], ids=["open key", "encrypted key"])
    def test_our_own_certificate_is_shown(self, authority: Authority, guarded: str) -> None:
        own = authority.issue(f"own{guarded}", key_password=guarded)
        given = {"broker_security": "ssl", "broker_cert": own.certificate, "broker_key": own.key}
        if guarded:
            given["broker_key_password"] = guarded
        assert KafkaSecurity.of(self.settings(**given)).encrypted

    @pytest.mark.parametrize(
        ("given", "text"),
        [
            ({"broker_ca": "a.pem"}, "broker_ca: is given, but broker_security is plaintext"),
            ({"broker_cert": "a.pem"}, "broker_cert: is given, but broker_security is plaintext"),
            ({"sasl_username": "me"}, "sasl_username: is given, but broker_security is plaintext"),
            (
                {"broker_security": "ssl", "sasl_password": SECRET},
                "sasl_password: is given, but broker_security is ssl",
            ),
            (
                {"broker_security": "sasl_plaintext", "broker_ca": "a.pem"},
                "broker_ca: is given, but broker_security is sasl_plaintext",
            ),
            ({"broker_security": "sasl_plaintext"}, "sasl_username: is missing"),
            ({"broker_security": "sasl_plaintext", "sasl_username": "me"}, "sasl_password: is missing"),
            (
                {"broker_security": "sasl_plaintext", "sasl_username": "me", "sasl_password": "a\0b"},
                "sasl_password: holds a NUL",
            ),
            ({"broker_security": "ssl", "broker_ca": "gone.pem"}, "broker_ca: gone.pem: No such file"),
            ({"broker_security": "ssl", "broker_cert": "gone.pem"}, "broker_cert: gone.pem: No such file"),
            ({"broker_security": "ssl", "broker_key": "a.key"}, "broker_key: is given without broker_cert"),
            (
                {"broker_security": "ssl", "broker_ca": "/"},
                "broker_ca: /: Is a directory",
            ),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_a_wrong_setting_is_one_clear_line(self, given: dict[str, str], text: str) -> None:
        with pytest.raises(ConfigError) as raised:
            KafkaSecurity.of(self.settings(**given))
        assert str(raised.value).startswith(text)
        assert SECRET not in str(raised.value)

    def test_files_that_are_no_certificates_are_distinguished(
        self, authority: Authority, certificate: Certificate, tmp_path: Path
    ) -> None:
        other, locked = authority.issue("other"), authority.issue("locked", key_password="keypass")
        text = secret_file(tmp_path, "-----BEGIN NOTHING-----\n")
        own = str(certificate.certificate)
        for given, expected in (
            ({"broker_ca": text}, f"broker_ca: {text}: holds no certificate"),
            ({"broker_cert": own}, "hold no certificate with its key"),
            ({"broker_cert": own, "broker_key": other.key}, "is not the key of broker_cert"),
            ({"broker_cert": own, "broker_key": text}, "hold no certificate with its key"),
            (
                {"broker_cert": locked.certificate, "broker_key": locked.key},
                f"broker_key: {locked.key}: is encrypted, and broker_key_password is missing",
            ),
            (
                {
                    "broker_cert": locked.certificate,
                    "broker_key": locked.key,
                    "broker_key_password": SECRET,
                },
                f"broker_key: {locked.key}: broker_key_password does not decrypt it",
            ),
        ):
            with pytest.raises(ConfigError) as raised:
                KafkaSecurity.of(self.settings(broker_security="ssl", **given))
            assert expected in str(raised.value)
            assert SECRET not in str(raised.value)

    def test_an_agent_that_cannot_log_in_says_so_before_it_starts(self) -> None:
        with pytest.raises(ConfigError, match="sasl_username: is missing"):
            check_broker(self.settings(broker="127.0.0.1:1", broker_security="sasl_ssl"))

    def test_an_agent_starts_without_its_broker(self) -> None:
        check_broker(self.settings(broker="127.0.0.1:1", broker_security="ssl"))

    @pytest.mark.parametrize("broker", ["me:hunter22@host:9092", "kafka://me:hunter22@host:9092"])
    def test_a_login_in_the_address_is_refused_unseen(self, broker: str) -> None:
        with pytest.raises(ConfigError, match="sasl_username") as raised:
            bootstrap_servers(broker)
        assert "hunter" not in str(raised.value)
