"""ClickHouse server with users on a free loopback port, for tests that stop and kill it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

from pipeline.embedded.process import EmbeddedProcess
from pipeline.model.errors import ConfigError
from pipeline.processes import Child
from pipeline.settings.extras import require

_PROCESS = Path(__file__).with_name("process.py")
_LOOPBACK = "127.0.0.1"

Xml = Mapping[str, "str | Sequence[str] | Xml"]
"""Elements by name, each a text, several texts (the element is repeated) or further elements."""


@dataclass(frozen=True, slots=True)
class User:
    """A user with the rights of ``grants`` (GRANT statements), with all rights if there are none."""

    name: str
    password: str = field(repr=False)
    grants: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Setup of a server; the user ``default`` has no password and all rights."""

    users: Sequence[User] = ()
    properties: Xml = field(default_factory=dict)  # further elements of config.xml
    profile: Mapping[str, str] = field(default_factory=dict)  # settings of every user


class ClickHouseServer(EmbeddedProcess):
    """ClickHouse's own HTTP interface over a folder, for as long as the ``with`` block runs.

    ``data`` keeps the tables from one start to the next; without it they end with the server. The server is
    that of chDB (``loadgen.engines.clickhouse.process``): one node, no native protocol, no Keeper of its own.

    Raises:
        ConfigError: the extra ``embedded`` is not installed, or the server did not start; the text says why.
    """

    def __init__(self, data: Path | None = None, settings: ServerSettings | None = None) -> None:
        super().__init__()
        self._data = data
        self._settings = settings or ServerSettings()
        self._folder: Path | None = None

    def dsn(self, user: str = "", database: str = "") -> str:
        """Return the DSN of a user with its password; by default that of ``default``."""
        passwords = {account.name: account.password for account in self._settings.users}
        login = f"{quote(user, safe='')}:{quote(passwords[user], safe='')}@" if user else ""
        return f"{self.url.replace('://', f'://{login}')}/{quote(database)}".rstrip("/")

    def log(self) -> str:
        """Return what the server has logged since its start."""
        file = self._folder / "server.log" if self._folder else None
        return file.read_text(errors="replace") if file and file.exists() else ""

    def start(self) -> None:
        """Start the server and wait until it answers."""
        require("chdb")
        self._folder = Path(tempfile.mkdtemp(prefix="smidgen-clickhouse-"))
        if self._data is not None:
            self._data.mkdir(parents=True, exist_ok=True)
            (self._folder / "data").symlink_to(self._data.absolute())
        self._write("config.xml", self._config())
        self._write("users.xml", self._users())
        self._child = Child([sys.executable, "-I", os.fspath(_PROCESS)], folder=self._folder)
        self.url = self._child.first_line()
        if not self.url.startswith("http"):
            words = self._child.last_words() or self.url
            self.stop()
            raise ConfigError(f"the ClickHouse server did not start: {words}")

    def stop(self) -> None:
        """Stop the server and remove its temporary folder."""
        super().stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None

    def _config(self) -> Xml:
        return {
            **{"listen_host": _LOOPBACK, "http_port": "0"},  # port 0: the system chooses one
            **{"users_config": os.fspath(self._of_folder("users.xml"))},
            **{"logger": {"log": os.fspath(self._of_folder("server.log"))}, "log-level": "warning"},
            **self._settings.properties,
        }

    def _users(self) -> Xml:
        everyone = (User("default", ""), *self._settings.users)
        return {
            "profiles": {"default": dict(self._settings.profile)},
            "quotas": {"default": {}},
            "users": {account.name: _user(account) for account in everyone},
        }

    def _of_folder(self, name: str) -> Path:
        assert self._folder is not None
        return self._folder / name

    def _write(self, name: str, elements: Xml) -> None:
        ElementTree.ElementTree(_element("clickhouse", elements)).write(self._of_folder(name))


def _user(account: User) -> Xml:
    return {
        **{"password": account.password, "networks": {"ip": _LOOPBACK}},
        **{"profile": "default", "quota": "default"},
        **({"grants": {"query": account.grants}} if account.grants else {"access_management": "1"}),
    }


def _element(name: str, content: Xml) -> ElementTree.Element:
    element = ElementTree.Element(name)
    for inner, value in content.items():
        if isinstance(value, Mapping):
            element.append(_element(inner, value))
            continue
        for text in [value] if isinstance(value, str) else value:
            ElementTree.SubElement(element, inner).text = text
    return element
