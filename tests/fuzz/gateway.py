"""Receivers of the gateway: nothing but a refusal escapes, and what they take is what the pipeline reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from agents.gateway.base import Receiver, Refusal, Request, Setup
from agents.gateway.intake import decode_request
from agents.gateway.receivers import RECEIVERS
from pipeline.messages.measurements import decode_profile
from tests.support import gateway_requests as requests

NAMES = {receiver.name: receiver for receiver in RECEIVERS}
ERRORS = (Refusal,)

_JSON = {"content-type": "application/json"}
_PAIRS = [{"name": name, "value": value} for name, value in requests.LABELS.items()]
_SEEDS: Mapping[str, Callable[[], tuple[bytes, ...]]] = {
    "pyroscope_ingest": lambda: (b"main;price 3\n", requests.form(profile=requests.pprof())),
    "pyroscope_push": lambda: (
        requests.pushed(requests.pprof(), requests.pprof()).SerializeToString(),
        requests.as_json(_PAIRS),
    ),
    "otlp_profiles": lambda: (requests.exported("shop", "till").SerializeToString(),),
    "parca": lambda: (
        requests.written(requests.pprof()).SerializeToString(),
        requests.as_json({"labels": _PAIRS}),
    ),
    "pprof": lambda: (b"main;price 3\n", requests.pprof()),
    "datadog": lambda: (requests.datadog(), requests.datadog(**{"cpu.pprof": requests.pprof()})),
    "smidgen": lambda: (requests.message({("price (shop/cart.py)", "tax (shop/cart.py)"): 3}),),
}
TOKENS = (b"\x0a\x04", b"\x12\x02", b"\xff" * 9, b"--" + requests.BOUNDARY.encode(), b"\r\n\r\n", b"\x1f\x8b")


def seeds(name: str) -> Callable[[], Iterator[bytes]]:
    """Return what makes the good bodies of a receiver."""
    return lambda: iter(_SEEDS[name]()) if name in _SEEDS else iter(())


def check(name: str) -> Callable[[bytes], None]:
    """Return the check of a receiver: its messages are read, and hold as many samples as they say."""
    receiver = NAMES[name]

    def run(data: bytes) -> None:
        query = {"name": "shop", "service": "shop"}
        request = Request("/", data, requests.NOW, "10.0.0.1", query, _headers(receiver, data))
        for part in decode_request(receiver, request, Setup()).parts:
            if part.message.topic == "profiles":
                profile = decode_profile(part.message.value, now=requests.NOW)
                assert profile.service == part.service
                assert profile.counts.sum() == part.samples
                assert part.message.key == f"{profile.service}/{profile.host}"

    return run


def _headers(receiver: Receiver, data: bytes) -> Mapping[str, str]:
    if data.startswith(b"--" + requests.BOUNDARY.encode()):
        return requests.FORM
    if data[:1] in (b"{", b"["):
        return _JSON
    return requests.PROTO if receiver.is_grpc else {}
