"""Dead letters as they are read, and what receipts say of them."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from pipeline.kafka import Entry
from pipeline.model.errors import ConfigError
from pipeline.settings.topics import load_topics
from pipeline.worker.dlq.dead_letter import (
    Claim,
    ReceiptKey,
    Receipts,
    claim_value,
    dead_letter_of,
    outcome_value,
    without_copies,
)

TOPICS = {topic.name: topic for topic in load_topics().values()}
HEADERS = {
    **{"topic": "profiles", "partition": "3", "offset": "17", "reason": "host: missing"},
    **{"stage": "aggregate", "time": "2026-01-31T12:00:00.000Z"},
}


def entry(headers: dict[str, str], value: bytes = b"{}", *, offset: int = 5, partition: int = 1) -> Entry:
    pairs = tuple((name, text.encode()) for name, text in headers.items())
    return Entry(partition, offset, 1_700_000_000.0, b"shop/h", value, pairs)


def test_a_dead_letter_says_where_it_came_from_and_why() -> None:
    dead_letter = dead_letter_of(entry(HEADERS))
    assert (dead_letter.position, dead_letter.topic, dead_letter.origin) == ((1, 5), "profiles", (3, 17))
    assert (dead_letter.reason, dead_letter.stage, dead_letter.service) == (
        "host: missing",
        "aggregate",
        "shop",
    )
    assert dead_letter.time == 1_769_860_800.0
    assert dead_letter.obstacle(TOPICS) == ""


def test_headers_that_are_missing_or_nonsense_hide_nothing() -> None:
    dead_letter = dead_letter_of(entry({"partition": "x", "time": "yesterday", "reason": "\x1b[2J\x07gone"}))
    assert (dead_letter.topic, dead_letter.origin, dead_letter.time) == ("", (-1, -1), 1_700_000_000.0)
    assert dead_letter.reason == "\ufffd[2J\ufffdgone"
    assert dead_letter.obstacle(TOPICS)


@pytest.mark.parametrize(
    ("headers", "value", "obstacle"),
    [
        ({"truncated": "99"}, b"x", "was too large to be kept whole"),
        ({"offset": "-1", "partition": "-1"}, b"x", "was made by a stage"),
        ({"null": "value"}, b"", "never had a value"),
        ({"topic": "other"}, b"x", "topics.yaml does not name: other"),
        ({"topic": "metrics"}, bytes(2 * 1024**2), "has 2097152 bytes, more than metrics takes"),
    ],
)
def test_what_cannot_be_replayed(headers: dict[str, str], value: bytes, obstacle: str) -> None:
    assert obstacle in dead_letter_of(entry(HEADERS | headers, value)).obstacle(TOPICS)


def claim(replay: str, *offsets: int, first: int = 0) -> Entry:
    made = {offset: Claim(replay, first + i, "profiles", 2, 100) for i, offset in enumerate(offsets)}
    return entry({"receipt": "claim"}, claim_value(replay, made), offset=1000)


def outcome(kind: str, *offsets: int) -> Entry:
    return entry({"receipt": kind}, outcome_value("r", offsets), offset=1001)


def test_receipts_show_what_became_of_each_dead_letter() -> None:
    receipts = Receipts()
    assert not receipts.add(entry(HEADERS))
    for one in (claim("r", 7, 5, 9), claim("r", 11, first=3), outcome("sent", 7), outcome("refused", 9)):
        assert receipts.add(one)
    status = {offset: receipts.status((1, offset)) for offset in (3, 5, 7, 9)}
    assert status == {3: "open", 5: "claimed", 7: "replayed", 9: "refused"}
    assert receipts.status((0, 7)) == "open", "a receipt speaks of its own partition"
    assert receipts.interrupted() == {(1, "r"): [5, 11]}
    assert receipts.claims[1, 5] == Claim("r", 1, "profiles", 2, 100)


def test_of_two_claims_the_first_holds() -> None:
    receipts = Receipts()
    for one in (claim("first", 5), claim("second", 5, 6)):
        receipts.add(one)
    assert (receipts.claims[1, 5].replay, receipts.claims[1, 6].replay) == ("first", "second")
    assert receipts.interrupted() == {(1, "first"): [5], (1, "second"): [6]}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("sent", b"nonsense"),
        ("sent", b"[]"),
        ("sent", orjson.dumps({"offsets": ["x"]})),
        ("claim", orjson.dumps({"replay": "r"})),
        ("claim", orjson.dumps({"replay": "r", "letters": [[1, 2]]})),
        ("maybe", orjson.dumps({"offsets": [1]})),
        ("", b""),
    ],
)
def test_a_receipt_that_cannot_be_read_is_no_dead_letter_and_is_not_passed_over(
    kind: str, value: bytes
) -> None:
    with pytest.raises(ConfigError, match="dead-letters partition 1 offset 5: not a receipt of a replay"):
        Receipts().add(entry({"receipt": kind}, value))


KEY = ReceiptKey(b"what the operator knows", "dead-letters")


def signed(one: Entry, partition: int = 1) -> Entry:
    """Return a receipt with the signature that it has in a partition."""
    kind = dict(one.headers)["receipt"]
    signature = KEY.signature(partition, kind, one.value or b"")
    return replace(one, headers=(*one.headers, ("signature", signature)))


def test_with_a_key_its_own_receipts_count_and_others_are_shown() -> None:
    receipts = Receipts(key=KEY)
    ours = (signed(claim("r", 7, 9)), signed(outcome("sent", 7)), signed(outcome("refused", 9)))
    for one in (*ours, outcome("sent", 5, 7), claim("forged", 6, 9), outcome("refused", 3)):
        assert receipts.add(one)
    status = {offset: receipts.status((1, offset)) for offset in (2, 3, 5, 6, 7, 9)}
    assert status == {
        **{2: "open", 3: "unsigned", 5: "unsigned", 6: "unsigned"},
        **{7: "replayed", 9: "refused"},
    }
    assert receipts.claims[1, 9].replay == "r"
    assert receipts.interrupted() == {}


SIGNED = signed(outcome("sent", 5))


@pytest.mark.parametrize(
    "forged",
    [
        pytest.param(signed(outcome("sent", 5), partition=0), id="of another partition"),
        pytest.param(replace(SIGNED, value=outcome_value("s", [5])), id="altered"),
        pytest.param(
            replace(SIGNED, headers=(("receipt", b"refused"), SIGNED.headers[1])), id="of another kind"
        ),
        pytest.param(replace(SIGNED, headers=(("receipt", b"sent"), ("signature", b""))), id="empty"),
    ],
)
def test_a_signature_is_of_one_receipt_in_one_partition(forged: Entry) -> None:
    receipts = Receipts(key=KEY)
    assert receipts.add(forged)
    assert receipts.status((1, 5)) == "unsigned"
    assert receipts.add(SIGNED)
    assert receipts.status((1, 5)) == "replayed"


@pytest.mark.parametrize("value", [b"nonsense", b"[]", b"{}", b'{"offsets": 3}', b'{"letters": [[]]}'])
def test_with_a_key_a_forged_receipt_that_says_nothing_stops_nobody(value: bytes) -> None:
    receipts = Receipts(key=KEY)
    assert receipts.add(entry({"receipt": "sent"}, value))
    assert receipts.unsigned == set()


def test_of_copies_the_one_with_a_signed_receipt_stays() -> None:
    receipts = Receipts(key=KEY)
    receipts.add(outcome("sent", 0))
    receipts.add(signed(outcome("sent", 1)))
    copies = [dead_letter_of(entry(HEADERS, offset=offset)) for offset in range(3)]
    assert [one.position[1] for one in without_copies(copies, receipts)] == [1]
    assert [one.position[1] for one in without_copies([copies[2], copies[0]], receipts)] == [0]


SAME: dict[str, str] = {}
ELSEWHERE, REMADE = {"offset": "18"}, {"offset": "-1", "partition": "-1"}


@pytest.mark.parametrize(
    ("made", "receipt", "kept"),
    [
        pytest.param([SAME, SAME], None, [0], id="a worker wrote it twice"),
        pytest.param([SAME, SAME, SAME], 1, [1], id="and the second was replayed"),
        pytest.param([SAME, SAME], 0, [0], id="or the first"),
        pytest.param([SAME, ELSEWHERE], None, [0, 1], id="equal messages at two offsets"),
        pytest.param([SAME, {"topic": "metrics"}], None, [0, 1], id="of two topics"),
        pytest.param([REMADE, REMADE], None, [0, 1], id="what stages made themselves"),
    ],
)
def test_dead_letters_of_one_message_are_one(
    made: list[dict[str, str]], receipt: int | None, kept: list[int]
) -> None:
    receipts = Receipts()
    if receipt is not None:
        assert receipts.add(claim("r", receipt))
    found = [dead_letter_of(entry(HEADERS | headers, offset=n)) for n, headers in enumerate(made)]
    assert [one.position[1] for one in without_copies(reversed(found), receipts)] == kept


def test_another_message_at_the_same_offset_is_another() -> None:
    found = [dead_letter_of(entry(HEADERS, value, offset=n)) for n, value in enumerate((b"a", b"b"))]
    assert without_copies(found, Receipts()) == found  # the topic was made anew
