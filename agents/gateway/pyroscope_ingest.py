"""Pyroscope's ``POST /ingest``: one profile, described by the address.

Source: the page "Server HTTP API" of Pyroscope's documentation, and what its clients for Go and Python send.
"""

from __future__ import annotations

from collections.abc import Mapping

from agents.gateway.base import Decoded, DecodeSetup, PushProtocol, Refusal, Request, SkippedPart
from agents.gateway.forms import read_form
from agents.gateway.profiles import Pushed, profile_parts
from agents.gateway.times import moment, number
from agents.profiles.formats import AUTO, Measure
from agents.profiles.formats.cpu import clock_of, names_type
from pipeline.model.errors import InvalidMessage

_DEFAULT_HZ = 100.0
_FASTEST_HZ = 100_000.0
"""Fastest rate of a sampler: a larger ``sampleRate`` is a unit of time, such as 1e9."""

_SAMPLES = ("", "samples")
_SUMS = ("", "sum")  # an average is of a state, such as memory in use
_FORMATS: Mapping[str, str] = {
    "": "collapsed",
    "folded": "collapsed",
    "collapsed": "collapsed",
    "lines": "collapsed",
    "pprof": "pprof",
    "jfr": "jfr",
    "speedscope": "speedscope",
}


def decode(request: Request, setup: DecodeSetup) -> Decoded:
    """Read one profile: collapsed stacks or lines, pprof, JFR or speedscope, plain or in a form."""
    query = request.query
    name, labels = parse_name(query.get("name", ""))
    format_name = query.get("format", "")
    service, type_ = _split_type(name)
    is_typed = _FORMATS.get(format_name) in ("pprof", "jfr")  # formats that say what their values are
    units, aggregation = query.get("units", "").lower(), query.get("aggregationType", "").lower()
    is_sum = units in _SAMPLES and aggregation in _SUMS
    is_other = type_ and not clock_of(Measure(type_))
    if is_other or not (is_typed or is_sum):
        return Decoded(skipped=(SkippedPart("not_cpu", f"{name[:200]}: not CPU", is_wrong=False),))
    data, format_ = _profile(request, format_name)
    if format_name == "lines":
        data = b"".join(line + b" 1\n" for line in data.splitlines() if line.strip())
    rate_hz = number(query, "sampleRate") or _DEFAULT_HZ
    if rate_hz > _FASTEST_HZ and not is_typed:
        raise InvalidMessage(
            f"sampleRate: {rate_hz:.0f} a second is no rate of samples: send samples, not times"
        )
    pushed = Pushed(
        data=data,
        labels={"service_name": service, **labels},
        start=moment(query, "from"),
        end=moment(query, "until"),
        rate_hz=rate_hz,
        format=format_,
        identity=type_ or name.rpartition(".")[2],
        type="" if is_typed or type_ == "samples" else type_,
    )
    return profile_parts(pushed, request, setup)


def _split_type(name: str) -> tuple[str, str]:
    """Return the application of a name and the type of its profile, empty if its end is none."""
    application, _, end = name.rpartition(".")
    return (application, end) if application and names_type(end) else (name, "")


def parse_name(text: str) -> tuple[str, Mapping[str, str]]:
    """Return application and labels of ``app{label=value,…}``.

    Raises:
        InvalidMessage: it is not of this form.
    """
    name, brace, rest = text.partition("{")
    name = name.strip()
    if not name or (brace and not rest.rstrip().endswith("}")):
        raise InvalidMessage(f"name: should be APPLICATION{{LABEL=VALUE,…}}, not {text[:100]!r}")
    labels: dict[str, str] = {}
    for pair in rest.rstrip().removesuffix("}").split(","):
        label, equals, value = pair.partition("=")
        if label.strip() and equals:
            labels[label.strip()] = value.strip().strip('"')
        elif pair.strip():
            raise InvalidMessage(f"name: {pair[:100]!r} is no LABEL=VALUE")
    return name, labels


def _profile(request: Request, format_name: str) -> tuple[bytes, str]:
    """Return the profile and the name of its format."""
    if "trie" in request.media_type or "tree" in request.media_type or format_name in ("trie", "tree"):
        raise Refusal(415, "format", f"format: {format_name or request.media_type} is not read: send pprof")
    if format_name not in _FORMATS:
        raise Refusal(415, "format", f"format: should be one of {', '.join(filter(None, _FORMATS))}")
    if request.media_type != "multipart/form-data":
        return request.body, _FORMATS[format_name]
    fields = read_form(request.headers["content-type"], request.body)
    if fields.get("prev_profile"):
        raise Refusal(415, "format", "prev_profile: profiles since the start are not read: update the client")
    profile = fields.get("profile", fields.get("jfr"))
    if profile is None:
        raise InvalidMessage("form: has no field profile or jfr")
    return profile, _FORMATS[format_name] if format_name else AUTO


RECEIVER = PushProtocol("pyroscope_ingest", ("/ingest",), decode)
