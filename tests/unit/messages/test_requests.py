from __future__ import annotations

from typing import Any

import orjson
import pytest

from pipeline.messages.requests import decode_requests, encode_requests, requests_message
from pipeline.model import RequestCounts, TypeCounts
from pipeline.model.errors import InvalidMessage

COUNTS = RequestCounts(
    service="shop",
    host="web-1",
    start=1_700_000_010.0,
    period_s=30.0,
    types=(
        TypeCounts("GET /cart/:id", 5, (0, 4, 0, 0, 1), ((-107, 3), (-96, 2))),
        TypeCounts("GET /", 0),
    ),
    release="v2",
    id="abc",
)
MESSAGE: dict[str, Any] = orjson.loads(encode_requests(COUNTS))
CART: dict[str, Any] = MESSAGE["types"][0]


def test_what_is_encoded_is_decoded() -> None:
    assert decode_requests(encode_requests(COUNTS)) == COUNTS
    assert requests_message(COUNTS).key == "shop/web-1"


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"service": None}, "service: missing"),
        ({"host": ""}, "host: empty"),
        ({"start": 1_700_000_011}, "start: should be a multiple of period_s"),
        ({"start": 1_800_000_000}, "start: .* s in the future"),
        ({"period_s": 0}, "period_s"),
        ({"period_s": 7200}, "period_s: 7200 is more than 3600"),
        ({"types": []}, "types: empty"),
        ({"types": [CART, CART]}, "types: one of them comes twice"),
        ({"types": [{**CART, "requests": -1}]}, r"types\[0\].requests"),
        ({"types": [{**CART, "requests": 2**40}, {"type": "b", "requests": 1}]}, "requests in all"),
        ({"types": [{**CART, "responses": [1, 2]}]}, r"types\[0\].responses: should have at least 5 items"),
        ({"types": [{**CART, "times": [[1, 2], [1, 2]]}]}, r"types\[0\].times: a bucket comes twice"),
        ({"types": [{**CART, "times": [[640, 2]]}]}, r"types\[0\].times: buckets should be"),
        ({"types": [{**CART, "times": [[1, -2]]}]}, r"types\[0\].times: requests should be"),
        ({"types": [{**CART, "times": [[1, 2, 3]]}]}, r"types\[0\].times\[0\]"),
    ],
)
def test_what_is_wrong_is_said(wrong: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidMessage, match=problem):
        decode_requests(orjson.dumps({**MESSAGE, **wrong}), now=1_700_000_100.0)
