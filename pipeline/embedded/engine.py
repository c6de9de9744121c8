"""The embedded store's engine: chDB, which is ClickHouse as a library."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from pipeline.embedded.protocol import SYNTAX_ERROR
from pipeline.embedded.statement import Statement
from pipeline.settings.extras import require


class EngineError(Exception):
    """ClickHouse refused or failed a statement; the text is its own, ``Code: N. DB::Exception: …``."""


class Engine:
    """A ClickHouse engine over one folder, which no other process may have open.

    ``execute`` may be called from several threads at once: each statement gets a connection of its own,
    so that its settings and its database are never seen by another.

    Raises:
        ConfigError: chDB is not installed.
        EngineError: the folder cannot be opened.
    """

    def __init__(self, data: Path, scratch: Path) -> None:
        require("chdb")
        import chdb

        self._chdb: Any = chdb
        self._path = str(data)
        self._scratch = scratch
        self._keeper = self._connect()  # keeps the engine running while no statement does

    def execute(self, statement: Statement) -> bytes:
        """Run a statement and return what it prints in its format.

        Raises:
            EngineError: ClickHouse's own words.
        """
        connection = self._connect()
        try:
            if statement.data is None and b";" in statement.sql.rstrip(b"; \t\r\n"):
                _check_single(connection, statement.sql)
            if statement.settings:
                self._run(connection, _set_clause(statement), "Null", {})
            if statement.database:
                self._run(connection, f"USE {_identifier(statement.database)}", "Null", {})
            if statement.data is None:
                return self._run(connection, statement.sql, statement.format, statement.parameters)
            return self._insert(connection, statement, statement.data)
        finally:
            connection.close()

    def close(self) -> None:
        """Let go of the folder."""
        self._keeper.close()

    def _insert(self, connection: Any, statement: Statement, data: bytes) -> bytes:
        # chDB takes binary rows from a file only.
        with tempfile.NamedTemporaryFile(dir=self._scratch, suffix=".rows") as rows:
            rows.write(data)
            rows.flush()
            source = f" FROM INFILE {_text(rows.name)} FORMAT {statement.format}"
            sql = statement.sql + source.encode()
            return self._run(connection, sql, "Null", statement.parameters)

    def _connect(self) -> Any:
        try:
            return self._chdb.connect(self._path)
        except RuntimeError as error:  # chDB raises nothing narrower
            raise EngineError(_message(error)) from None

    def _run(self, connection: Any, sql: str | bytes, form: str, parameters: Any) -> bytes:
        try:
            return bytes(connection.query(sql, form, params=dict(parameters)).bytes() or b"")
        except RuntimeError as error:
            raise EngineError(_message(error)) from None


def _check_single(connection: Any, sql: bytes) -> None:
    """Refuse several statements in one request, as the server does; chDB would run them all."""
    count = connection._conn.classify_query(sql.decode(errors="replace"))["statement_count"]
    if count > 1:
        text = "Syntax error (Multi-statements are not allowed). (SYNTAX_ERROR)"
        raise EngineError(f"Code: {SYNTAX_ERROR}. DB::Exception: {text}")


def _set_clause(statement: Statement) -> str:
    return "SET " + ", ".join(f"{name} = {_text(value)}" for name, value in statement.settings.items())


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _identifier(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{escaped}`"


def _message(error: RuntimeError) -> str:
    text = str(error)
    return text[max(text.find("Code: "), 0) :].strip()
