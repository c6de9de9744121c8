"""HTTP/1.1 as a client: answers of all forms, and what is none."""

from __future__ import annotations

import asyncio

import pytest

from agents.experiments.replay.connection import Address, Pool, ReplayedAnswer, address_of_url, request_head
from pipeline.model.errors import ConfigError
from tests.unit.agents.experiments.replay.services import raw_service

OK = b"HTTP/1.1 200 OK\r\n"


async def ask(pool: Pool, method: str = "GET") -> ReplayedAnswer:
    connection = await pool.take()
    done: asyncio.Future[ReplayedAnswer] = asyncio.get_running_loop().create_future()
    head = request_head(method, "/", "a", [], 0) + b"\r\n"
    connection.send(head, head_only=method == "HEAD", done=done.set_result)
    return await asyncio.wait_for(done, 60)


def answers(content: bytes, *methods: str, close: bool = False) -> list[ReplayedAnswer]:
    async def main() -> list[ReplayedAnswer]:
        async with raw_service(content, close=close) as address:
            pool = Pool(address_of_url(address), 1)
            try:
                return [await ask(pool, method) for method in methods]
            finally:
                pool.close()

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("content", "body"),
    [
        pytest.param(OK + b"Content-Length: 3\r\n\r\nabc", b"abc", id="length"),
        pytest.param(OK + b"content-length:0\r\n\r\n", b"", id="empty"),
        pytest.param(
            OK + b"Transfer-Encoding: chunked\r\n\r\n2;x=1\r\nab\r\n1\r\nc\r\n0\r\nT: 1\r\n\r\n",
            b"abc",
            id="chunks",
        ),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", b"", id="no content"),
        pytest.param(
            b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\na", b"a", id="continue"
        ),
        pytest.param(OK + b"Connection: close\r\nContent-Length: 1\r\n\r\na", b"a", id="close after it"),
        pytest.param(b"HTTP/1.1 200 OK\nContent-Length: 3\n\nabc", b"abc", id="line feeds"),
        pytest.param(b"HTTP/1.1 200 OK\nContent-Length: 3\r\n\nabc", b"abc", id="both ends of lines"),
        pytest.param(
            b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nab\n1\nc\n0\n\n",
            b"abc",
            id="chunks, line feeds",
        ),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", b"a", id="http 1.0"),
        pytest.param(OK + b"Connection: Keep-Alive, Close\r\nContent-Length: 1\r\n\r\na", b"a", id="options"),
        pytest.param(OK + b"Content-Length: 3, 3\r\nContent-Length: 3\r\n\r\nabc", b"abc", id="one length"),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\nabc", b"", id="a body of 204"),
        pytest.param(OK + b"Content-Length: 1\r\n\r\na\r\n", b"a", id="an empty line after it"),
        pytest.param(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", b"", id="length of 304"),
        pytest.param(
            b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\na",
            b"a",
            id="hints",
        ),
    ],
)
def test_answers_are_read_one_after_another(content: bytes, body: bytes) -> None:
    found = answers(content, "GET", "GET")
    assert [answer.body for answer in found] == [body, body]
    assert all(answer.status in (200, 204, 304) and not answer.error for answer in found)
    assert all(answer.ended >= answer.sent > 0 for answer in found)


def test_an_answer_may_end_with_its_connection_and_one_to_head_has_no_body() -> None:
    (whole,) = answers(OK + b"\r\nall of it", "GET", close=True)
    assert (whole.status, whole.body) == (200, b"all of it")
    (head,) = answers(OK + b"Content-Length: 7\r\nX-A: 1\r\nx-a: 2\r\n\r\n", "HEAD")
    assert (head.status, head.body, head.header("X-A")) == (200, b"", ["1", "2"])


@pytest.mark.parametrize(
    ("content", "error"),
    [
        pytest.param(OK + b"Content-Length: 9\r\n\r\nab", "was closed", id="broken off"),
        pytest.param(OK + b"Content-Length: 3\r\n\r\nhello", "longer than its length", id="too long"),
        pytest.param(b"HTTP/1.1 099 A\r\n\r\n", "no HTTP/1", id="no status"),
        pytest.param(OK + b"Content-Length: many\r\n\r\nab", "no single length", id="no length"),
        pytest.param(OK + b"Content-Length: -1\r\n\r\nab", "no single length", id="negative length"),
        pytest.param(OK + b"Content-Length: 1, 2\r\n\r\nab", "no single length", id="two lengths"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\n0x2\r\nab", "no size", id="prefix of a size"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", "was closed", id="no last chunk"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "no size", id="no chunk"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n", "no size", id="negative chunk"),
        pytest.param(b"SSH-2.0-x\r\n\r\n", "no HTTP/1", id="another protocol"),
        pytest.param(b"\x00\x00\x12\x04\x00", "no HTTP/1", id="HTTP/2"),
        pytest.param(b"HTT", "was closed", id="a part"),
        pytest.param(b"", "was closed", id="nothing"),
    ],
)
def test_what_is_no_answer_fails(content: bytes, error: str) -> None:
    (found,) = answers(content, "GET", close=True)
    assert found.status == 0
    assert error in found.error


@pytest.mark.parametrize(
    ("target", "value", "line"),
    [
        pytest.param("/a?b=%C3%A9", "x", b"GET /a?b=%C3%A9 HTTP/1.1\r\nX: x\r\n", id="ascii"),
        pytest.param("/caf\xe9", "caf\xe9", b"GET /caf\xe9 HTTP/1.1\r\nX: caf\xe9\r\n", id="latin-1"),
        pytest.param(
            "/\u5496%41?a=\xe9&b",
            "\u5496",
            b"GET /%E5%92%96%41?a=%C3%A9&b HTTP/1.1\r\nX: \xe5\x92\x96\r\n",
            id="text",
        ),
    ],
)
def test_texts_beyond_latin_1_are_sent_as_utf_8(target: str, value: str, line: bytes) -> None:
    assert request_head("GET", target, "a", [("Host", "a"), ("X", value)], 0) == line.replace(
        b"\r\nX", b"\r\nHost: a\r\nX"
    )


@pytest.mark.parametrize(
    ("head", "close", "connections"), [(b"", False, 2), (b"Connection: close\r\n", True, 1)]
)
def test_more_requests_than_connections_wait_for_one(head: bytes, close: bool, connections: int) -> None:
    async def main() -> list[int]:
        async with raw_service(OK + head + b"Content-Length: 0\r\n\r\n", close=close) as address:
            pool = Pool(address_of_url(address), connections)
            answers = await asyncio.gather(*(ask(pool) for _ in range(20)))
            pool.close()
            return [answer.status for answer in answers]

    assert asyncio.run(main()) == [200] * 20


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://a:1", Address("a", 1, "a:1")),
        ("http://a/x/", Address("a", 80, "a", "/x")),
        ("https://[::1]:2", Address("::1", 2, "[::1]:2", "", True)),
    ],
)
def test_addresses_are_read(url: str, address: Address) -> None:
    assert address_of_url(url) == address


@pytest.mark.parametrize("url", ["a:1", "ftp://a", "http://", "http://a:b", "http://a?x=1"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="should be http"):
        address_of_url(url)
