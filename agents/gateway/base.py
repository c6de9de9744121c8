"""What receivers are made of: a request, what is decoded of it, and the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agents.gateway.labels import LabelNames
from pipeline.model import Outgoing
from pipeline.model.errors import InvalidMessage

PLAIN = "text/plain"
JSON = "application/json"
PROTOBUF = ("application/x-protobuf", "application/proto", "application/protobuf", "application/grpc")
"""Content types of protocol buffers; the last is that of gRPC."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a client sent, unpacked. Names of headers are in lower case."""

    path: str
    body: bytes
    now: float  # epoch seconds
    peer: str = ""  # address of the sender
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def media_type(self) -> str:
        """The content type, without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


@dataclass(frozen=True, slots=True)
class Setup:
    """What all requests are decoded with."""

    names: LabelNames = field(default_factory=LabelNames)
    max_message_bytes: int = 1024**2  # of a message's value
    max_unpacked_bytes: int = 64 * 1024**2  # of what a profile inside a request unpacks to


@dataclass(frozen=True, slots=True)
class Part:
    """One message to publish, and what of it counts against the quota of its service.

    A part with an id is published once, however often it is sent; without one, each time.
    """

    message: Outgoing
    service: str
    samples: int = 0  # stack samples, or points of metrics
    id: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something within a request that is not taken: a code for metrics, and one line of text."""

    reason: str
    text: str
    is_wrong: bool = True  # False: nothing is wrong with it, it is just not looked at, such as a heap profile


@dataclass(frozen=True, slots=True)
class Decoded:
    """The messages of a request, and what of it is not taken."""

    parts: tuple[Part, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    services: frozenset[str] = frozenset()  # of which it speaks, besides those of its parts
    apply: Callable[[str], None] | None = None  # done with the client's name once the request may be taken
    headers: Mapping[str, str] = field(default_factory=dict)  # of the answer


class Refusal(Exception):
    """A request of which nothing is taken: HTTP status, a code for metrics, one line for the client."""

    def __init__(self, status: int, reason: str, text: str, *, retry_s: float = 0.0) -> None:
        super().__init__(text)
        self.status = status
        self.reason = reason
        self.text = text
        self.retry_s = retry_s  # after which to try again, for 429 and 503

    def result(self) -> Result:
        """Return it as what came of the request."""
        return Result(self.status, self.text, self.reason, retry_s=self.retry_s)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a request, for the receiver to spell."""

    status: int
    text: str
    reason: str = ""
    skipped: tuple[Skipped, ...] = ()
    retry_s: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)  # of the answer

    @property
    def is_taken(self) -> bool:
        """Whether the request was taken, in part at least."""
        return self.status < 400

    @property
    def wrong(self) -> tuple[Skipped, ...]:
        """What of it is wrong."""
        return tuple(skipped for skipped in self.skipped if skipped.is_wrong)


@dataclass(frozen=True, slots=True)
class Reply:
    """The body of an answer."""

    body: bytes = b""
    media_type: str = PLAIN


def plain_reply(_request: Request, result: Result) -> Reply:
    """Answer one line of text."""
    return Reply(result.text.encode() + b"\n")


@dataclass(frozen=True, slots=True)
class Receiver:
    """A protocol: where it is posted to, how it is decoded and answered.

    ``decode`` raises Refusal, or InvalidMessage for what makes no sense, which answers 400.
    """

    name: str
    routes: tuple[str, ...]
    decode: Callable[[Request, Setup], Decoded]
    reply: Callable[[Request, Result], Reply] = plain_reply
    is_grpc: bool = False  # whether its routes are methods of gRPC, too


def malformed(error: InvalidMessage) -> Refusal:
    """Return the refusal of what makes no sense."""
    return Refusal(400, "malformed", str(error))
