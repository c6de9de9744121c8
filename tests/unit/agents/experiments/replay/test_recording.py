"""Files of recorded requests: written, read, and what is wrong with them counted."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from agents.experiments.replay.recording import (
    RecordedRequest,
    decode_recording,
    encode_cut,
    encode_head,
    encode_request,
    read_recording,
)
from pipeline.model.errors import ConfigError

HEAD = encode_head("shop", "share 1", 5.0)
GET = RecordedRequest(10.0, "GET", "/cart?a=1", (("Accept", "text/html"),), status=200, duration_s=0.25)


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(GET, id="no body"),
        pytest.param(RecordedRequest(1.0, "POST", "/x", body="ä€".encode()), id="text"),
        pytest.param(RecordedRequest(1.0, "POST", "/x", body=b"\xff\x00"), id="bytes"),
        pytest.param(RecordedRequest(1.0, "GET", "/", session="ab", weight=12.5), id="session"),
    ],
)
def test_a_request_is_read_as_it_was_written(request_: RecordedRequest) -> None:
    assert decode_recording(HEAD + encode_request(request_), "f").requests == (request_,)


def test_requests_are_in_the_order_of_time_and_a_session_that_is_not_whole_is_left_out() -> None:
    sessions = {3.0: "a", 1.0: "b", 2.0: "a", 0.5: ""}
    lines = [
        encode_request(RecordedRequest(time, "GET", "/", session=name)) for time, name in sessions.items()
    ]
    recording = decode_recording(HEAD + b"".join(lines), "f")
    assert [request.time for request in recording.requests] == [0.5, 1.0, 2.0, 3.0]
    cut = decode_recording(HEAD + b"".join(lines) + encode_cut("a"), "f")
    assert ([request.session for request in cut.requests], cut.cut) == (["", "b"], 2)
    added = decode_recording(HEAD + encode_request(GET) + HEAD + encode_request(GET), "f")
    assert (len(added.requests), added.invalid) == (2, 0)


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"7",
        b"{}",
        b'{"time": 1, "method": "GET"}',
        b'{"time": -1, "method": "GET", "target": "/"}',
        b'{"time": true, "method": "GET", "target": "/"}',
        b'{"time": 1, "method": "G T", "target": "/"}',
        b'{"time": 1, "method": "GET", "target": "http://elsewhere/"}',
        b'{"time": 1, "method": "GET", "target": "/ HTTP/1.1"}',
        b'{"time": 1, "method": "GET", "target": "/", "headers": {"a": "b"}}',
        b'{"time": 1, "method": "GET", "target": "/", "headers": [["a", "b\\r\\nc: d"]]}',
        b'{"time": 1, "method": "GET", "target": "/", "headers": [["a: b", "c"]]}',
        b'{"time": 1, "method": "GET", "target": "/", "body_base64": "*"}',
    ],
)
def test_a_line_that_is_no_request_is_counted(line: bytes) -> None:
    found = decode_recording(HEAD + line + b"\n" + encode_request(GET), "f")
    assert (found.requests, found.invalid) == ((GET,), 1)
    assert found.first_invalid.startswith("2: ")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(b"", "is no recording", id="empty"),
        pytest.param(encode_request(GET), "is no recording", id="without a head"),
        pytest.param(HEAD.replace(b'"version":1', b'"version":2'), "has version 2", id="of another version"),
        pytest.param(HEAD, "holds no requests", id="without requests"),
        pytest.param(HEAD + b"7\n", "line 2: should be an object", id="with invalid lines alone"),
        pytest.param(gzip.compress(HEAD)[:-9], "damaged gzip", id="broken off"),
    ],
)
def test_a_file_that_is_no_recording_is_refused(content: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "shop.jsonl"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=why):
        read_recording(path)


def test_gzip_is_seen_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "shop.jsonl"
    path.write_bytes(gzip.compress(HEAD + encode_request(GET)) + gzip.compress(encode_request(GET)))
    assert read_recording(path).requests == (GET, GET)
