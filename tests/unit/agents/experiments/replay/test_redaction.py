"""What nobody may read is a keyed hash."""

from __future__ import annotations

import pytest

from agents.experiments.replay.redaction import FIELDS, Redaction, Unreadable

REDACTION = Redaction(b"k" * 32, fields=FIELDS | {"email"})
JSON = "application/json; charset=utf-8"


def test_the_hash_is_the_same_for_the_same_value_and_key() -> None:
    other = Redaction(b"other" * 6)
    assert REDACTION.digest("a") == REDACTION.digest("a")
    assert len({REDACTION.digest("a"), REDACTION.digest("b"), other.digest("a")}) == 3


def test_headers_are_redacted_by_name() -> None:
    found = REDACTION.of_headers([("AUTHORIZATION", "Bearer x"), ("cookie", "sid=1"), ("Accept", "a")])
    assert found == (
        ("AUTHORIZATION", REDACTION.digest("Bearer x")),
        ("cookie", REDACTION.digest("sid=1")),
        ("Accept", "a"),
    )


@pytest.mark.parametrize(
    ("target", "kept"),
    [
        ("/a", "/a"),
        ("/a?", "/a?"),
        ("/a?q=a%20b&x", "/a?q=a%20b&x"),
        ("/a?q=1&Token=s3", f"/a?q=1&Token={REDACTION.digest('s3')}"),
        ("/a?%74oken=s%33", f"/a?token={REDACTION.digest('s3')}"),
        ("/a?token", f"/a?token={REDACTION.digest('')}"),
    ],
)
def test_parameters_are_redacted_by_name(target: str, kept: str) -> None:
    assert REDACTION.of_target(target) == kept


FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("body", "kind", "kept"),
    [
        pytest.param(
            b'{"user":{"Email":"a@b","age":7},"keys":[{"token":5}]}',
            JSON,
            b'{"user":{"Email":"%b","age":7},"keys":[{"token":"%b"}]}'
            % (REDACTION.digest("a@b").encode(), REDACTION.digest("5").encode()),
            id="json, wherever the field is",
        ),
        pytest.param(
            b"a=1&password=x+y", FORM, f"a=1&password={REDACTION.digest('x y')}".encode(), id="form"
        ),
        pytest.param(b'{"a": 1}', JSON, None, id="json without such fields keeps its spelling"),
        pytest.param(b"\x00\xff", "application/octet-stream", None, id="bytes"),
        pytest.param(b"", JSON, None, id="nothing"),
        pytest.param(b"a=1&b=%20", FORM, None, id="a form without such fields"),
    ],
)
def test_fields_of_bodies_are_redacted_by_name(body: bytes, kind: str, kept: bytes | None) -> None:
    assert REDACTION.of_body(body, kind) == (body if kept is None else kept)


@pytest.mark.parametrize(
    ("body", "kind", "encoding"),
    [(b"{", JSON, ""), (b"\x1f\x8b", JSON, "gzip"), (b"\xff=1", "application/x-www-form-urlencoded", "")],
)
def test_a_body_that_cannot_be_looked_into_is_not_kept(body: bytes, kind: str, encoding: str) -> None:
    with pytest.raises(Unreadable):
        REDACTION.of_body(body, kind, encoding)
