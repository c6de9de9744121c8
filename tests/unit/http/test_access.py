"""Who is let in at HTTP endpoints: tokens, logins, loopback, and no web pages."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from pipeline.embedded.door import DoorUser, from_a_web_page
from pipeline.embedded.store import main
from pipeline.http.access import is_authorised, is_loopback

LOGIN = DoorUser("me", "hunter22")


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("Bearer let-me-in", True),
        ("bearer let-me-in", True),
        ("  Bearer   let-me-in ", True),
        ("Bearer let-me-i", False),
        ("Bearer let-me-inn", False),
        ("Bearer LET-ME-IN", False),
        ("Basic let-me-in", False),
        ("let-me-in", False),
        ("Bearer", False),
        ("Bearer \udcff", False),
        ("", False),
        (None, False),
    ],
)
def test_a_bearer_token(header: str | None, expected: bool) -> None:
    assert is_authorised(header, "let-me-in") is expected


def test_no_token_asks_for_nothing_and_an_empty_one_admits_nobody() -> None:
    assert is_authorised(None, None)
    assert not is_authorised("Bearer ", "")
    assert not is_authorised(None, "")


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *(("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("[::1]", True), ("localhost", True)),
        *(("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("localhost.evil.org", False)),
    ],
)
def test_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("headers", "arguments", "expected"),
    [
        ({"X-ClickHouse-User": "me", "X-ClickHouse-Key": "hunter22"}, {}, True),
        ({"X-ClickHouse-User": "me", "X-ClickHouse-Key": "hunter2"}, {}, False),
        ({"X-ClickHouse-User": "you", "X-ClickHouse-Key": "hunter22"}, {}, False),
        ({"X-ClickHouse-Key": "hunter22"}, {}, False),
        ({}, {"user": "me", "password": "hunter22"}, True),
        ({}, {"user": "me"}, False),
        ({}, {}, False),
        ({"Authorization": "Basic " + base64.b64encode(b"me:hunter22").decode()}, {}, True),
        ({"Authorization": "Basic " + base64.b64encode(b"me:").decode()}, {}, False),
        ({"Authorization": "Basic \xff"}, {}, False),
        ({"Authorization": "Bearer hunter22"}, {}, True),
        ({"Authorization": "Bearer hunter"}, {"user": "me", "password": "hunter22"}, False),
    ],
)
def test_the_login_of_the_embedded_store(
    headers: dict[str, str], arguments: dict[str, str], expected: bool
) -> None:
    assert LOGIN.admits(headers, arguments) is expected
    assert "hunter22" not in repr(LOGIN)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Host": "127.0.0.1:1234"}, False),
        ({"Host": "localhost"}, False),
        ({"Host": "[::1]:1234"}, False),
        ({}, False),
        ({"Host": "127.0.0.1:1234", "Sec-Fetch-Site": "none"}, False),  # typed into the address bar
        ({"Host": "127.0.0.1:1234", "Sec-Fetch-Site": "cross-site"}, True),
        ({"Host": "127.0.0.1:1234", "Origin": "http://127.0.0.1:1234"}, True),
        ({"Host": "rebound.evil.org:1234"}, True),
        ({"Host": "[2001:db8::1]:1234"}, True),
    ],
)
def test_web_pages_are_kept_out(headers: dict[str, str], expected: bool) -> None:
    assert from_a_web_page(headers) is expected


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--password-file", "gone"], "--password-file: gone: No such file"),
        (["--certificate", "gone"], "--certificate gone and --key None: No such file"),
    ],
)
def test_a_store_that_cannot_guard_its_door_does_not_start(
    flags: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data", str(tmp_path / "d"), "--scratch", str(tmp_path / "s"), *flags]) == 2
    assert capsys.readouterr().err.startswith(text)
