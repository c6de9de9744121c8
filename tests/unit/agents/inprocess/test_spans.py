from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any

import pytest

from agents.inprocess.carriers import carried_labels
from agents.inprocess.marks import sampling
from smidgen.inprocess import SpanProcessor, origin
from tests.unit.agents.inprocess.sampled import annotations_now

pytestmark = pytest.mark.usefixtures("sampler_on")


class Span:
    """A span as the SDK has it, as far as it is used."""

    numbers = itertools.count(1)

    def __init__(self, name: str, parent: Span | None = None, remote: bool = False) -> None:
        self.name = name
        self.context = types.SimpleNamespace(span_id=next(self.numbers), is_remote=False)
        self.parent: Any = parent.context if parent else None
        if remote:
            self.parent = types.SimpleNamespace(span_id=next(self.numbers), is_remote=True)


@contextlib.contextmanager
def running(processor: SpanProcessor, span: Span, context: Any = None) -> Iterator[Span]:
    processor.on_start(span, context)
    yield span
    processor._on_ending(span)
    processor.on_end(span)


def test_samples_count_for_the_root_span_by_its_last_name() -> None:
    processor = SpanProcessor()
    with running(processor, Span("GET")) as root:
        root.name = "GET /cart/{id}"
        assert annotations_now() == ["endpoint=GET /cart/{id}"]
        with running(processor, Span("db", root)):
            assert annotations_now() == ["endpoint=GET /cart/{id}"]
        assert annotations_now() == ["endpoint=GET /cart/{id}"]
    assert annotations_now() == []


def test_a_thread_counts_for_the_root_while_it_runs_a_span_of_it() -> None:
    processor, found = SpanProcessor(), []

    def work(root: Span) -> None:
        with running(processor, Span("work", root)):
            found.append(annotations_now())
        found.append(annotations_now())

    with running(processor, Span("GET /")) as root:
        thread = threading.Thread(target=work, args=(root,))
        thread.start()
        thread.join()
    assert found == [["endpoint=GET /"], []]


def test_tasks_count_each_for_its_own_request_with_those_that_it_awaits() -> None:
    processor = SpanProcessor()

    async def child() -> list[str]:
        await asyncio.sleep(0.005)
        return annotations_now()

    async def request(name: str) -> list[list[str]]:
        with running(processor, Span(name)):
            return list(await asyncio.gather(child(), child()))

    async def main() -> list[list[list[str]]]:
        return list(await asyncio.gather(request("GET /a"), request("GET /b")))

    assert asyncio.run(main()) == [[["endpoint=GET /a"]] * 2, [["endpoint=GET /b"]] * 2]


def test_spans_that_count_for_nothing_here() -> None:
    processor, span = SpanProcessor(), Span("GET /")
    processor.on_start(span)
    thread = threading.Thread(target=processor.on_end, args=(span,))
    thread.start()
    thread.join()
    assert annotations_now() == [], "it ended in another thread"
    with running(processor, Span("late", Span("ended"))):
        assert annotations_now() == [], "its parent is not known"
    processor.on_start(object())
    assert carried_labels(threading.get_ident()) == (), "it makes no sense"


def test_a_processor_forgets_at_its_end_and_without_a_sampler_does_nothing() -> None:
    processor = SpanProcessor()
    processor.on_start(Span("GET /"))
    assert processor.force_flush()
    processor.shutdown()
    sampling.on = False
    processor.on_start(Span("GET /"))
    assert carried_labels(threading.get_ident()) == ()


class Baggage:
    """``opentelemetry.baggage`` and ``opentelemetry.context``, with contexts that are dictionaries."""

    def __init__(self) -> None:
        self.now: dict[str, str] = {}

    def get_baggage(self, key: str, context: dict[str, str] | None = None) -> str | None:
        return (self.now if context is None else context).get(key)

    def set_baggage(self, key: str, value: str, context: dict[str, str] | None = None) -> dict[str, str]:
        return {**(self.now if context is None else context), key: value}

    def attach(self, context: dict[str, str]) -> dict[str, str]:
        before, self.now = self.now, context
        return before

    def detach(self, before: dict[str, str]) -> None:
        self.now = before


@pytest.fixture
def baggage(monkeypatch: pytest.MonkeyPatch) -> Baggage:
    one = Baggage()
    monkeypatch.setitem(sys.modules, "opentelemetry", types.SimpleNamespace(baggage=one, context=one))
    monkeypatch.setitem(sys.modules, "opentelemetry.baggage", one)
    return one


def test_an_endpoint_counts_over_services(baggage: Baggage) -> None:
    with origin("GET /front", "front"):
        sent = baggage.now
        with origin("GET /inner", "inner"):
            assert baggage.now == sent  # where all began counts
    assert baggage.now == {}
    with running(SpanProcessor(), Span("POST /price", remote=True), sent):
        assert annotations_now() == ["endpoint=GET /front", "metadata=origin=front"]


def test_without_baggage_a_remote_parent_leaves_the_own_name(baggage: Baggage) -> None:
    with running(SpanProcessor(), Span("POST /price", remote=True), {}):
        assert annotations_now() == ["endpoint=POST /price"]


def test_without_opentelemetry_an_origin_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with origin("GET /"):
        assert annotations_now() == []
