"""Which failures of the driver are waited out, reported to a person, or let through."""

from __future__ import annotations

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError, OperationalError, ProgrammingError

from pipeline.model.errors import ConfigError, QueryRefused, StoreUnavailable
from pipeline.storage.failures import translated


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        pytest.param(OperationalError("Error executing HTTP request"), StoreUnavailable, id="network"),
        pytest.param(OperationalError("HTTP status 503"), StoreUnavailable, id="overloaded proxy"),
        pytest.param(DatabaseError("HTTP driver received HTTP status 502"), StoreUnavailable, id="gateway"),
        pytest.param(DatabaseError("too many parts", code=252), StoreUnavailable, id="too many parts"),
        pytest.param(DatabaseError("(total) memory", code=241), StoreUnavailable, id="the server's memory"),
        pytest.param(DatabaseError("User memory limit", code=241), StoreUnavailable, id="a user's memory"),
        pytest.param(DatabaseError("Query memory limit", code=241), QueryRefused, id="a query's memory"),
        pytest.param(DatabaseError("Memory limit (for query)", code=241), QueryRefused, id="in older words"),
        pytest.param(DatabaseError("elapsed", code=159), QueryRefused, id="a query's time"),
        pytest.param(DatabaseError("Cannot read all data", code=33), QueryRefused, id="a damaged part"),
        pytest.param(DatabaseError("readonly", code=242), StoreUnavailable, id="read-only replica"),
        pytest.param(DatabaseError("keeper", code=999), StoreUnavailable, id="keeper"),
        pytest.param(DatabaseError("login", code=516), ConfigError, id="password"),
        pytest.param(DatabaseError("no table", code=60), ConfigError, id="not migrated"),
        pytest.param(DatabaseError("syntax", code=62), DatabaseError, id="syntax"),
        pytest.param(DatabaseError("HTTP driver received HTTP status 404"), DatabaseError, id="not found"),
        pytest.param(ProgrammingError("closed"), ProgrammingError, id="misuse"),
        pytest.param(KeyError("x"), KeyError, id="our own mistake"),
    ],
)
def test_failures_are_distinguished(error: Exception, wanted: type[Exception]) -> None:
    with pytest.raises(wanted) as raised, translated("http://host"):
        raise error
    assert type(raised.value) is wanted
    if wanted in (StoreUnavailable, QueryRefused, ConfigError):
        assert "http://host" in str(raised.value)


def test_the_systems_own_words_are_the_reason() -> None:
    error = OperationalError("a long story with a URL in it")
    error.__cause__ = ConnectionRefusedError(111, "Connection refused")
    with (
        pytest.raises(StoreUnavailable, match=r"http://host does not answer: Connection refused$"),
        translated("http://host"),
    ):
        raise error
