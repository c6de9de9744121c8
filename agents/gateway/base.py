"""Types of receivers: a request, its decoded parts, and the answer."""

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

_GRPC_CODES: Mapping[int, tuple[int, str]] = {
    400: (3, "INVALID_ARGUMENT"),
    401: (16, "UNAUTHENTICATED"),
    403: (7, "PERMISSION_DENIED"),
    408: (4, "DEADLINE_EXCEEDED"),
    413: (8, "RESOURCE_EXHAUSTED"),
    415: (3, "INVALID_ARGUMENT"),
    429: (8, "RESOURCE_EXHAUSTED"),
    503: (14, "UNAVAILABLE"),
}


def grpc_code(status: int) -> tuple[int, str]:
    """Return the code of gRPC, by number and name, that stands for a status of HTTP."""
    return _GRPC_CODES.get(status, (2, "UNKNOWN"))


@dataclass(frozen=True, slots=True)
class Request:
    """A client's request, unpacked. Names of headers are in lower case."""

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
class DecodeSetup:
    """Settings for decoding requests."""

    names: LabelNames = field(default_factory=LabelNames)
    max_message_bytes: int = 1024**2  # most bytes of a message's value
    max_unpacked_bytes: int = 64 * 1024**2  # most bytes that a profile inside a request unpacks to


@dataclass(frozen=True, slots=True)
class MessagePart:
    """One message to publish, and the amount that counts against the quota of its service.

    A part with an id is published once, however often it is sent; without one, each time.
    """

    message: Outgoing
    service: str
    samples: int = 0  # stack samples, or points of metrics
    id: str = ""
    clock: str = ""  # that a profile follows: cpu or wall


@dataclass(frozen=True, slots=True)
class SkippedPart:
    """A part of a request that is not taken: a code for metrics, and one line of text."""

    reason: str
    text: str
    is_wrong: bool = True  # False: valid, but not read, such as a heap profile


@dataclass(frozen=True, slots=True)
class Decoded:
    """The messages of a request, and its parts that are not taken."""

    parts: tuple[MessagePart, ...] = ()
    skipped: tuple[SkippedPart, ...] = ()
    services: frozenset[str] = frozenset()  # services named, besides those of its parts
    apply: Callable[[str], None] | None = None  # called with the client's name once the request is accepted
    headers: Mapping[str, str] = field(default_factory=dict)  # of the answer


class Refusal(Exception):
    """A request of which nothing is taken: HTTP status, a code for metrics, one line for the client."""

    def __init__(self, status: int, reason: str, text: str, *, retry_s: float = 0.0) -> None:
        super().__init__(text)
        self.status = status
        self.reason = reason
        self.text = text
        self.retry_s = retry_s  # seconds after which to try again, for 429 and 503

    def result(self) -> RequestResult:
        """Return the refusal as the result of the request."""
        return RequestResult(self.status, self.text, self.reason, retry_s=self.retry_s)


@dataclass(frozen=True, slots=True)
class RequestResult:
    """Result of a request, which the receiver turns into an answer."""

    status: int
    text: str
    reason: str = ""
    skipped: tuple[SkippedPart, ...] = ()
    retry_s: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)  # of the answer

    @property
    def is_taken(self) -> bool:
        """True if at least a part of the request was taken."""
        return self.status < 400

    @property
    def wrong(self) -> tuple[SkippedPart, ...]:
        """Its parts that are wrong."""
        return tuple(skipped for skipped in self.skipped if skipped.is_wrong)


@dataclass(frozen=True, slots=True)
class AnswerBody:
    """The body of an answer."""

    body: bytes = b""
    media_type: str = PLAIN


def plain_reply(_request: Request, result: RequestResult) -> AnswerBody:
    """Answer one line of text."""
    return AnswerBody(result.text.encode() + b"\n")


@dataclass(frozen=True, slots=True)
class PushProtocol:
    """A protocol: its paths, and the functions that decode and answer.

    ``decode`` raises Refusal, or InvalidMessage for an invalid request, which is answered by 400.
    """

    name: str
    routes: tuple[str, ...]
    decode: Callable[[Request, DecodeSetup], Decoded]
    reply: Callable[[Request, RequestResult], AnswerBody] = plain_reply
    is_grpc: bool = False  # whether its routes are also methods of gRPC


def malformed(error: InvalidMessage) -> Refusal:
    """Return the refusal of an invalid request."""
    return Refusal(400, "malformed", str(error))
