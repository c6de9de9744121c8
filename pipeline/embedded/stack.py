"""Broker and store together, for one command, one test run or one demo."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import Self

from pipeline.embedded.broker import EmbeddedBroker
from pipeline.embedded.process import EmbeddedProcess
from pipeline.model.errors import ConfigError
from pipeline.processes import Child
from pipeline.settings.extras import require
from pipeline.storage.connect import open_store


class EmbeddedStore(EmbeddedProcess):
    """The store as a process of its own, on a free loopback port for as long as the ``with`` block runs.

    ``data`` is the folder that keeps the tables, made if it is not there; without one they go with the
    process.

    Raises:
        ConfigError: the extra ``embedded`` is not installed, or the folder cannot be used.
    """

    def __init__(self, data: Path | None = None) -> None:
        super().__init__()
        self._data = data
        self._scratch: Path | None = None

    def start(self) -> None:
        """Start the store and wait until it answers."""
        require("chdb")
        self._scratch = Path(tempfile.mkdtemp(prefix="smidgen-store-"))
        data = self._data or self._scratch / "data"
        try:
            data.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self.stop()
            raise ConfigError(f"--data: {data}: {error.strerror}") from None
        command = [sys.executable, "-m", "pipeline.embedded.store"]
        self._child = Child([*command, "--data", os.fspath(data), "--scratch", os.fspath(self._scratch)])
        self.url = self._child.first_line()
        if not self.url:
            words = self._child.last_words()
            self.stop()
            raise ConfigError(f"the embedded store did not start on {data}: {words}")

    def stop(self) -> None:
        """Stop the store and remove its temporary folder."""
        super().stop()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
        self._scratch = None


class EmbeddedStack:
    """Broker and store on loopback, tables made, for as long as the ``with`` block runs.

    Start it from a thread that lives as long as the stack: its processes end with that thread.

    Raises:
        ConfigError: the extra ``embedded`` is not installed, or ``data`` cannot be used.
        BrokerUnavailable: the broker did not start.
    """

    def __init__(self, data: Path | None = None) -> None:
        self._broker = EmbeddedBroker()
        self._store = EmbeddedStore(data)
        self._running = ExitStack()

    @property
    def broker(self) -> str:
        """Bootstrap server, ``127.0.0.1:PORT``."""
        return self._broker.url

    @property
    def store(self) -> str:
        """DSN, ``http://127.0.0.1:PORT``."""
        return self._store.url

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of ``broker`` and ``store``."""
        return {"broker": self._broker.pid, "store": self._store.pid}

    def died(self) -> str:
        """Return which of ``broker`` and ``store`` is no longer running; empty while both are."""
        for name, part in (("broker", self._broker), ("store", self._store)):
            if not part.running:
                return name
        return ""

    def __enter__(self) -> Self:
        with ExitStack() as started:
            started.enter_context(self._store)
            started.enter_context(self._broker)
            with closing(open_store(self.store)) as store:
                store.migrate()
            self._running = started.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()
