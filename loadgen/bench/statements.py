"""Raw statements to a store, for work that no verb of a Store does."""

from __future__ import annotations

from urllib.request import Request, urlopen

TIMEOUT_S = 3600.0


def ask(dsn: str, statement: str | bytes) -> str:
    """Run a statement, with the rows of an INSERT if there are any, and return its output as TSV."""
    body = statement.encode() if isinstance(statement, str) else statement
    with urlopen(Request(f"{dsn}/?default_format=TSV", data=body), timeout=TIMEOUT_S) as answer:
        return str(answer.read().decode())
