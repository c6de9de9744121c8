from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

import smidgen.inprocess as smidgen_sampler
from agents.gateway import profile_message
from agents.gateway.base import Decoded, Request, Setup
from agents.gateway.intake import decode_request
from agents.inprocess.messages import Interval, build_messages
from agents.inprocess.options import Identity
from pipeline.messages.measurements import decode_profile
from pipeline.model import Annotation
from pipeline.model.errors import InvalidMessage
from tests.unit.agents.gateway.support import NOW, Bench

STACKS: dict[tuple[str, ...], int] = {
    ("<module> (app.py)", "endpoint=/buy (<smidgen>)", "price (shop/cart.py)"): 3
}
IDENTITY = Identity("shop", "h1", "v7", {"region": "eu"})


def sent(end: float = NOW, **changed: Any) -> bytes:
    [message] = build_messages(Interval(end - 10, end, 20.0, STACKS), IDENTITY, "id-1")
    return json.dumps(json.loads(message.value) | changed).encode()


def decode(body: bytes, setup: Setup | None = None) -> Decoded:
    return decode_request(profile_message.RECEIVER, Request("/profiles", body, NOW), setup or Setup())


def test_a_message_of_the_sampler_is_taken_as_it_is() -> None:
    [part] = decode(sent()).parts
    profile = decode_profile(part.message.value, now=NOW)
    assert profile.frames == ("app.<module>", "endpoint=/buy", "shop.cart.price")
    assert profile.annotations == (Annotation(1, "endpoint", "/buy"),)
    assert (profile.release, profile.rate_hz, profile.id) == ("v7", 20.0, "id-1")
    assert profile.labels == {"region": "eu"}
    assert (part.message.topic, part.message.key) == ("profiles", "shop/h1")
    assert (part.service, part.samples) == ("shop", 3)


def test_a_message_that_is_sent_again_has_the_same_id() -> None:
    for body in (sent(), sent(id="")):
        [first], [second] = decode(body).parts, decode(body).parts
        assert first.id == second.id
        assert first.message == second.message


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[1]",
        sent(counts=[-1]),
        sent(stacks=[[9]]),
        sent(end=NOW + 7200),
        sent(end=NOW - 9 * 86400),
        sent(service="a/b"),
        sent(service="a b"),
    ],
)
def test_what_makes_no_sense_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidMessage):
        profile_message.decode(Request("/profiles", body, NOW), Setup())


def test_the_gateway_answers_and_publishes_once() -> None:
    async def main() -> list[int]:
        async with bench.client() as client:
            return [(await client.post("/profiles", data=body)).status for body in (sent(), sent(), b"{}")]

    bench = Bench()
    assert [status // 100 for status in asyncio.run(main())] == [2, 2, 4]
    assert len(bench.outbox.profiles()) == 1


async def test_the_sampler_posts_to_the_gateway() -> None:
    def work(url: str) -> None:
        assert smidgen_sampler.start("shop", send_to=url, rate_hz=500, interval="1h", budget=1.0)
        end = time.thread_time() + 0.2
        while time.thread_time() < end:
            pass
        smidgen_sampler.stop(60.0)

    bench = Bench(now=time.time())
    async with bench.client() as client:
        await asyncio.to_thread(work, str(client.make_url("/")))
    [message] = bench.outbox.messages
    profile = decode_profile(message.value, now=time.time())
    assert profile.service == "shop"
    assert profile.counts.sum() > 5
    assert any(name.endswith("test_the_sampler_posts_to_the_gateway.work") for name in profile.frames)
