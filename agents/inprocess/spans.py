"""OpenTelemetry: samples count for the root span of the request that they serve.

A request's endpoint counts over all threads and tasks in which its spans run, and over services where the
baggage names the endpoint with which the request entered (FBDetect §3.2). Nothing of OpenTelemetry is
imported before it is in use: the processor has the methods that its SDK calls.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from agents.inprocess.carriers import Carrier, attach, current_carrier, detach
from agents.inprocess.marks import Label, sampling

ENDPOINT_KEY = "smidgen.endpoint"
SERVICE_KEY = "smidgen.service"
"""Entries of the baggage: the endpoint and service with which a request entered."""


class _Root:
    """The outermost span of a request in this process, or the endpoint with which it entered elsewhere."""

    __slots__ = ("_endpoint", "_service", "_span")

    def __init__(self, span: Any, endpoint: str, service: str) -> None:
        self._span = span
        self._endpoint = endpoint
        self._service = service

    def labels(self) -> tuple[Label, ...]:
        """Return the labels as they are now: a span is renamed when its route is known."""
        endpoint: Label = ("endpoint", self._endpoint or str(self._span.name))
        return (endpoint, ("metadata", f"origin={self._service}")) if self._service else (endpoint,)


class SpanProcessor:
    """Labels the carriers of spans: ``tracer_provider.add_span_processor(SpanProcessor())``.

    The thread or task in which a span starts counts for its root span until it ends. Spans that are not
    recorded are not seen.
    """

    def __init__(self) -> None:
        self._running: dict[int, tuple[_Root, Carrier, Any]] = {}

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Label the carrier with the span's root; called by the SDK in the thread that starts the span."""
        if not sampling.on:
            return
        try:
            self._begin(span, parent_context)
        except Exception:  # errors of tracing must not fail the request
            return

    def on_end(self, span: Any) -> None:
        """Take the span's label off; called by the SDK in any thread."""
        running = self._running.pop(span.context.span_id, None)
        if running:
            _, carrier, labels = running
            detach(carrier, labels)

    def _on_ending(self, span: Any) -> None:
        """Do nothing; newer SDKs call it before a span ends."""

    def shutdown(self) -> None:
        """Forget all spans."""
        for _, carrier, labels in list(self._running.values()):
            detach(carrier, labels)
        self._running.clear()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Do nothing: nothing waits here."""
        return True

    def _begin(self, span: Any, parent_context: Any) -> None:
        parent = span.parent
        if parent is None or parent.is_remote:
            root = _Root(span, *_baggage_of(parent_context))
        elif running := self._running.get(parent.span_id):
            root = running[0]
        else:
            return  # its parent has ended, or began before the sampler
        carrier = current_carrier()

        def labels() -> tuple[Label, ...]:
            return root.labels()

        self._running[span.context.span_id] = (root, carrier, labels)
        attach(carrier, labels)


@contextmanager
def origin(endpoint: str, service: str = "") -> Iterator[None]:
    """Put the request's first endpoint and service into the baggage of requests that are sent within.

    Needs opentelemetry-api; without it, or within what another service has begun, it does nothing.
    """
    try:
        from opentelemetry import baggage, context
    except ImportError:
        yield
        return
    if baggage.get_baggage(ENDPOINT_KEY):
        yield
        return
    named = baggage.set_baggage(ENDPOINT_KEY, endpoint)
    attached = context.attach(baggage.set_baggage(SERVICE_KEY, service, named) if service else named)
    try:
        yield
    finally:
        context.detach(attached)


def _baggage_of(parent_context: Any) -> tuple[str, str]:
    """Return the endpoint and service with which a request entered, empty where it entered here."""
    baggage: Any = sys.modules.get("opentelemetry.baggage")
    if not baggage:
        return "", ""
    endpoint, service = (baggage.get_baggage(key, parent_context) for key in (ENDPOINT_KEY, SERVICE_KEY))
    return str(endpoint or ""), str(service or "") if endpoint else ""
