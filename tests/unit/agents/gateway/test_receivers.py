"""Each protocol: what its clients send, as messages, and the answers that they understand."""

from __future__ import annotations

import gzip
from collections.abc import Mapping

import orjson
import pytest
from google.protobuf import json_format

from agents.gateway import otlp_profiles, parca, pprof_upload, pyroscope_ingest, pyroscope_push
from agents.gateway.base import Decoded, DecodeSetup, PushProtocol, Refusal, Request, RequestResult
from agents.gateway.grpc_server import peer_address
from agents.gateway.intake import decode_request
from agents.gateway.labels import DEFAULT_NAMES, LabelNames
from agents.gateway.receivers import RECEIVERS
from agents.profiles.formats import Measure
from agents.profiles.formats.otlp import OTLP
from agents.profiles.formats.pprof import PPROF
from pipeline.messages.measurements import decode_profile
from pipeline.model import Annotation, Profile
from tests.support import profile_files
from tests.support.gateway_requests import (
    FORM,
    LABELS,
    NOW,
    PROTO,
    as_json,
    exported,
    form,
    pprof,
    pushed,
    written,
)
from tests.unit.agents.gateway.support import stacks_of

COLLAPSED = b"main;price 3\nmain;pay 1\n"
STACKS = {"main;price": 3, "main;pay": 1}


def request(body: bytes, headers: Mapping[str, str] = PROTO, **query: str) -> Request:
    return Request("/", body, NOW, "10.1.2.3", query, headers)


def decode(receiver: PushProtocol, sent: Request, setup: DecodeSetup | None = None) -> Decoded:
    return decode_request(receiver, sent, setup or DecodeSetup())


def profiles(decoded: Decoded) -> list[Profile]:
    return [decode_profile(part.message.value, now=NOW) for part in decoded.parts]


NAME = "shop.cpu{hostname=h1,region=eu,service_git_ref=ab12,endpoint=/buy,__session_id__=77}"
TIMES = {"from": "1789999980", "until": "1789999990"}


@pytest.mark.parametrize(
    ("body", "headers", "query"),
    [
        pytest.param(COLLAPSED, {}, {}, id="collapsed"),
        pytest.param(b"main;price\nmain;pay\nmain;price\nmain;price\n", {}, {"format": "lines"}, id="lines"),
        pytest.param(pprof(), {}, {"format": "pprof"}, id="pprof"),
        pytest.param(form(profile=pprof(), sample_type_config=b"{}"), FORM, {}, id="form"),
    ],
)
def test_ingest_of_pyroscope(body: bytes, headers: Mapping[str, str], query: Mapping[str, str]) -> None:
    sent = request(body, headers, name=NAME, **TIMES, **query)
    (profile,) = profiles(decode(pyroscope_ingest.RECEIVER, sent))
    assert (profile.service, profile.host, profile.release) == ("shop", "h1", "ab12")
    assert (profile.start, profile.end, profile.rate_hz) == (1789999980, 1789999990, 100)
    assert profile.labels == {"region": "eu"}
    assert profile.annotations == (Annotation(0, "endpoint", "/buy"),)
    assert stacks_of(profile) == {f"endpoint=/buy;{stack}": count for stack, count in STACKS.items()}


def test_ingest_takes_times_in_nanoseconds_and_jfr_in_a_form() -> None:
    times = {"from": "1789999980000000001", "until": "1789999990000000000"}
    recording = form(jfr=gzip.compress(profile_files.FILES["jfr"]), labels=b"")
    sent = request(recording, FORM, name="shop{hostname=h1}", format="jfr", **times)
    (profile,) = profiles(decode(pyroscope_ingest.RECEIVER, sent))
    assert profile.start == pytest.approx(1789999980)
    assert profile.end == 1789999990
    assert profile.counts.sum() > 0


@pytest.mark.parametrize(
    ("body", "headers", "query", "status"),
    [
        pytest.param(COLLAPSED, {}, {"name": "shop.alloc_objects{}"}, 0, id="not CPU by name"),
        pytest.param(COLLAPSED, {}, {"name": "shop{}", "units": "bytes"}, 0, id="not CPU by units"),
        *(
            pytest.param(
                COLLAPSED,
                {},
                {"name": "shop", "format": format_, "units": units},
                0,
                id=f"{format_} of {units}",
            )
            for format_, units in [
                ("folded", "bytes"),
                ("collapsed", "objects"),
                ("lines", "lock_samples"),
                ("speedscope", "lock_nanoseconds"),
            ]
        ),
        pytest.param(COLLAPSED, {}, {"name": ""}, 400, id="no name"),
        pytest.param(COLLAPSED, {}, {"name": "shop{a=b"}, 400, id="open bracket"),
        pytest.param(COLLAPSED, {}, {"name": "shop{a}"}, 400, id="no value"),
        pytest.param(COLLAPSED, {}, {"name": "shop", "format": "trie"}, 415, id="trie"),
        pytest.param(
            b"\0", {"content-type": "binary/octet-stream+tree"}, {"name": "shop"}, 415, id="tree by type"
        ),
        pytest.param(COLLAPSED, {}, {"name": "shop", "format": "gold"}, 415, id="no format"),
        pytest.param(COLLAPSED, FORM, {"name": "shop"}, 400, id="no form"),
        pytest.param(form(other=b"1"), FORM, {"name": "shop"}, 400, id="form without profile"),
        pytest.param(form(profile=pprof())[:-20], FORM, {"name": "shop"}, 400, id="cut form"),
        pytest.param(
            form(profile=pprof(), prev_profile=pprof()), FORM, {"name": "shop"}, 415, id="previous profile"
        ),
        pytest.param(pprof()[:40], {}, {"name": "shop", "format": "pprof"}, 400, id="cut pprof"),
    ],
)
def test_ingest_leaves_out_what_is_not_cpu_and_refuses_what_makes_no_sense(
    body: bytes, headers: Mapping[str, str], query: Mapping[str, str], status: int
) -> None:
    sent = request(body, headers, **query)
    if status:
        with pytest.raises(Refusal) as refused:
            decode(pyroscope_ingest.RECEIVER, sent)
        assert refused.value.status == status
    else:
        decoded = decode(pyroscope_ingest.RECEIVER, sent)
        assert [(each.reason, each.is_wrong) for each in decoded.skipped] == [("not_cpu", False)]
        assert not decoded.parts


@pytest.mark.parametrize(
    ("query", "service", "clock"),
    [
        pytest.param({"name": "shop"}, "shop", "cpu", id="no type"),
        pytest.param({"name": "shop.backend"}, "shop.backend", "cpu", id="a name with a dot"),
        *(
            pytest.param({"name": f"shop.{end}"}, f"shop.{end}", "cpu", id=f"a service {end}")
            for end in ("memcached", "lockbox", "blocks", "heapster", "members", "allocator", "liveness")
        ),
        pytest.param(
            {"name": "shop.cpu", "units": "samples", "aggregationType": "sum"}, "shop", "cpu", id="CPU"
        ),
        pytest.param(
            {"name": "shop.cpu", "units": "Samples", "aggregationType": "SUM"}, "shop", "cpu", id="capitals"
        ),
        pytest.param({"name": "shop.itimer"}, "shop", "cpu", id="a timer"),
        pytest.param({"name": "shop.wall"}, "shop", "wall", id="the wall"),
        pytest.param({"name": "shop.wall", "format": "lines"}, "shop", "wall", id="lines of the wall"),
        *(
            pytest.param({"name": f"shop.{end}"}, "shop", "", id=end)
            for end in ("alloc", "alloc_in_new_tlab_bytes", "inuse_space", "heap", "lock_count", "mutex")
        ),
        *(
            pytest.param({"name": f"shop.{end}"}, "shop", "", id=end)
            for end in ("goroutines", "exceptions", "live", "off_cpu", "offcpu", "block_duration", "mem")
        ),
        pytest.param({"name": "shop", "aggregationType": "average"}, "shop", "", id="a state"),
        pytest.param({"name": "shop.cpu", "units": "nanoseconds"}, "shop", "", id="no samples"),
    ],
)
def test_ingest_of_stacks_is_what_its_address_says(query: dict[str, str], service: str, clock: str) -> None:
    decoded = decode(pyroscope_ingest.RECEIVER, request(COLLAPSED, {}, **query))
    assert [(part.service, part.clock) for part in decoded.parts] == ([(service, clock)] if clock else [])
    assert [part.reason for part in decoded.skipped] == ([] if clock else ["not_cpu"])


def test_ingest_of_typed_profiles_is_what_these_say() -> None:
    heap = pprof(Measure("inuse_space", "bytes"))
    for body, headers, query in (
        (heap, {}, {"format": "pprof"}),
        (form(profile=heap), FORM, {}),
    ):
        decoded = decode(pyroscope_ingest.RECEIVER, request(body, headers, name="shop.cpu", **query))
        assert [part.reason for part in decoded.skipped] == ["not_cpu"]
        assert not decoded.parts


@pytest.mark.parametrize(
    ("unit", "weights", "rate_hz", "samples"),
    [("seconds", [0.001, 0.003], 1000, 4), ("none", [1, 3], 100, 4), ("milliseconds", [10.5, 29.5], 100, 4)],
    ids=["a period in the file", "samples", "times without a period"],
)
def test_the_rate_of_a_profile_is_that_by_which_its_samples_are_counted(
    unit: str, weights: list[float], rate_hz: float, samples: int
) -> None:
    sampled = {"type": "sampled", "unit": unit, "samples": [[0], [0, 1]], "weights": weights}
    sent = request(profile_files.speedscope(sampled), {}, name="shop", format="speedscope")
    (profile,) = profiles(decode(pyroscope_ingest.RECEIVER, sent))
    assert (profile.rate_hz, profile.counts.sum()) == (rate_hz, samples)


@pytest.mark.parametrize(("type_", "clock"), [("main", "cpu"), ("wall", "wall"), ("inuse_objects", "")])
def test_the_type_in_a_profile_goes_before_that_in_the_address(type_: str, clock: str) -> None:
    sampled = {"type": "sampled", "unit": "none", "name": type_, "samples": [[0]], "weights": [3]}
    sent = request(profile_files.speedscope(sampled), {}, name="shop.cpu", format="speedscope")
    decoded = decode(pyroscope_ingest.RECEIVER, sent)
    assert [part.clock for part in decoded.parts] == [clock] * bool(clock)


def test_ingest_refuses_a_rate_that_is_a_unit_of_time() -> None:
    sent = request(COLLAPSED, {}, name="shop.cpu", sampleRate="1000000000")
    with pytest.raises(Refusal, match="sampleRate: 1000000000 a second is no rate"):
        decode(pyroscope_ingest.RECEIVER, sent)


PAIRS = [{"name": name, "value": value} for name, value in LABELS.items()]
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("receiver", "sent"),
    [
        pytest.param(pyroscope_push.RECEIVER, request(pushed(pprof()).SerializeToString()), id="pyroscope"),
        pytest.param(pyroscope_push.RECEIVER, request(as_json(PAIRS), JSON), id="pyroscope JSON"),
        pytest.param(parca.RECEIVER, request(written(pprof()).SerializeToString()), id="parca"),
        pytest.param(parca.RECEIVER, request(as_json({"labels": PAIRS}), JSON), id="parca JSON"),
    ],
)
def test_raw_profiles_of_series(receiver: PushProtocol, sent: Request) -> None:
    (profile,) = profiles(decode(receiver, sent))
    assert (profile.service, profile.host, profile.rate_hz) == ("shop", "h1", 100)
    assert stacks_of(profile) == STACKS
    result = RequestResult(200, "took 1")
    assert receiver.reply(sent, result).body == (b"{}" if sent.media_type == "application/json" else b"")


def test_a_wrong_profile_does_not_take_the_others_with_it() -> None:
    heap = pprof(Measure("inuse_space", "bytes"))
    sent = pushed(pprof(), b"\xff\xff", heap, pprof()).SerializeToString()
    decoded = decode(pyroscope_push.RECEIVER, request(sent))
    assert len({part.id for part in decoded.parts}) == 2, "two profiles of one content are two messages"
    assert [each.reason for each in decoded.skipped] == ["malformed", "not_cpu"]


def test_labels_of_samples_are_their_endpoints() -> None:
    profile = PPROF["Profile"].FromString(gzip.decompress(pprof()))
    profile.string_table.extend([b"endpoint", b"/buy"])
    last = len(profile.string_table) - 1
    profile.sample[0].label.add(key=last - 1, str=last)
    (found,) = profiles(
        decode(pyroscope_push.RECEIVER, request(pushed(profile.SerializeToString()).SerializeToString()))
    )
    assert stacks_of(found) == {"endpoint=/buy;main;price": 3, "main;pay": 1}
    assert [(each.kind, each.value) for each in found.annotations] == [("endpoint", "/buy")]


def test_a_few_bytes_that_stand_for_many_frames_are_refused() -> None:
    profile = PPROF["Profile"].FromString(gzip.decompress(pprof()))
    location = profile.location[0]
    for _ in range(60_000):
        location.line.add(function_id=location.line[0].function_id)
    for _ in range(100):
        profile.sample.add(location_id=[location.id], value=list(profile.sample[0].value))
    sent = request(gzip.compress(profile.SerializeToString()), {}, service="shop")
    with pytest.raises(Refusal, match="frames") as refused:
        decode(pprof_upload.RECEIVER, sent)
    assert refused.value.status == 400
    assert len(sent.body) < 20_000


@pytest.mark.parametrize("receiver", RECEIVERS, ids=lambda receiver: receiver.name)
@pytest.mark.parametrize("body", [b"", b"\xff" * 40, b'{"series": 3}', b"[]", b'{"series": [{"labels": 1}]}'])
@pytest.mark.parametrize("headers", [PROTO, JSON, FORM, {}], ids=str)
def test_garbage_is_refused(receiver: PushProtocol, body: bytes, headers: Mapping[str, str]) -> None:
    sent = request(body, headers, service="shop", name="shop")
    refused = None
    try:
        assert not decode(receiver, sent).parts
    except Refusal as refusal:
        refused = refusal
    assert refused is None or (refused.status in (400, 413, 415) and "\n" not in refused.text)


def test_otlp_attributes_that_refer_to_the_table_of_strings() -> None:
    """From version 1.10 of the protocol on, clients may send them so."""
    data = exported("")
    texts = ("service.name", "shop", "host.name", "h7")
    first = len(data.dictionary.string_table)
    data.dictionary.string_table.extend(text.encode() for text in texts)
    del data.resource_profiles[0].resource.attributes[:]
    for index in range(0, len(texts), 2):
        attribute = data.resource_profiles[0].resource.attributes.add(key_strindex=first + index)
        attribute.value.string_value_strindex = first + index + 1
    (profile,) = profiles(decode(otlp_profiles.RECEIVER, request(data.SerializeToString())))
    assert (profile.service, profile.host) == ("shop", "h7")


def test_otlp_profiles_of_two_services_and_of_none() -> None:
    sent = request(exported("shop", "", "till").SerializeToString())
    decoded = decode(otlp_profiles.RECEIVER, sent)
    found = profiles(decoded)
    assert [profile.service for profile in found] == ["shop", "till"]
    assert (found[0].release, found[0].rate_hz) == ("7", 20)
    assert (found[0].start, found[0].end) == (NOW - 10, NOW)
    assert stacks_of(found[0]) == {"main;price": 7}
    answer = otlp_profiles.RECEIVER.reply(sent, RequestResult(200, "", skipped=decoded.skipped))
    said = otlp_profiles.ANSWERS["Response"].FromString(answer.body).partial_success
    assert (said.rejected, said.error_message) == (1, b"labels: name no service")


def test_otlp_answers_nothing_where_all_was_taken_and_a_status_where_nothing_was() -> None:
    sent = request(b"")
    assert otlp_profiles.RECEIVER.reply(sent, RequestResult(200, "took 1")).body == b""
    refused = otlp_profiles.RECEIVER.reply(sent, RequestResult(503, "full", "full", retry_s=5)).body
    assert otlp_profiles.ANSWERS["Status"].FromString(refused).code == 14


def test_otlp_as_json_is_read_as_its_protocol_buffer_is() -> None:
    message = exported("shop", "", "till")
    spelt = OTLP.as_json["ProfilesData"].FromString(message.SerializeToString())
    sent = request(json_format.MessageToJson(spelt).encode(), JSON)
    decoded = decode(otlp_profiles.RECEIVER, sent)
    [*found], [*wanted] = (
        profiles(each)
        for each in (decoded, decode(otlp_profiles.RECEIVER, request(message.SerializeToString())))
    )
    assert [(each.service, each.release, each.start, stacks_of(each)) for each in found] == [
        (each.service, each.release, each.start, stacks_of(each)) for each in wanted
    ]
    answer = otlp_profiles.RECEIVER.reply(sent, RequestResult(200, "", skipped=decoded.skipped))
    assert orjson.loads(answer.body)["partialSuccess"] == {
        "rejectedProfiles": "1",
        "errorMessage": "labels: name no service",
    }
    assert otlp_profiles.RECEIVER.reply(sent, RequestResult(200, "took 1")).body == b"{}"
    refused = otlp_profiles.RECEIVER.reply(sent, RequestResult(503, "full", "full"))
    assert orjson.loads(refused.body) == {"code": 14, "message": "full"}


@pytest.mark.parametrize("body", [b"{", b"[1]", b"\xff", b'{"resourceProfiles": 3}', b"[" * 10_000])
def test_what_is_no_json_of_otlp_is_refused_in_words(body: bytes) -> None:
    with pytest.raises(Refusal, match="no JSON of OTLP profiles"):
        decode(otlp_profiles.RECEIVER, request(body, JSON))


@pytest.mark.parametrize(
    ("type_", "unit", "reasons"),
    [
        pytest.param("events", "count", ["not_cpu"], id="hits of a probe"),
        pytest.param("events", "nanoseconds", ["not_cpu"], id="threads that wait"),
        pytest.param("wall", "nanoseconds", ["not_cpu"], id="the wall beside CPU"),
        pytest.param("cpu", "nanoseconds", [], id="the same time in another unit"),
    ],
)
def test_profiles_beside_those_of_cpu_are_left_out(type_: str, unit: str, reasons: list[str]) -> None:
    message = exported("shop")
    scope = message.resource_profiles[0].scope_profiles[0]
    strings = message.dictionary.string_table
    strings.extend([type_.encode(), unit.encode()])
    profile = scope.profiles.add(time_unix_nano=scope.profiles[0].time_unix_nano, duration_nano=10**10)
    profile.sample_type.type_strindex = len(strings) - 2
    profile.sample_type.unit_strindex = len(strings) - 1
    if type_ == "wall":
        profile.period, profile.period_type.unit_strindex = 10**7, 4
    profile.samples.add(stack_index=1, values=[50_000_000_000])
    decoded = decode(otlp_profiles.RECEIVER, request(message.SerializeToString()))
    assert [profile.counts.sum() for profile in profiles(decoded)] == [7]
    assert [skipped.reason for skipped in decoded.skipped] == reasons


def test_an_idle_service_makes_an_interval_without_samples() -> None:
    """A profile in which nothing was sampled is right: it moves event time on."""
    for count in ([], [0]):
        data = PPROF["Profile"]()
        data.string_table.extend([b"", b"cpu", b"count", b"main"])
        data.sample_type.add(type=1, unit=2)
        data.function.add(id=1, name=3)
        data.location.add(id=1).line.add(function_id=1)
        for value in count:
            data.sample.add(location_id=[1], value=[value])
        body = data.SerializeToString()
        [profile] = profiles(decode(pprof_upload.RECEIVER, request(body, {}, service="shop")))
        assert (profile.start, profile.end, profile.counts.sum()) == (NOW - 10, NOW, 0)


@pytest.mark.parametrize(
    ("labels", "service", "host"),
    [
        pytest.param({"service_name": "default/shop"}, "default.shop", "10.1.2.3", id="slash, no host"),
        pytest.param({"service_name": "a", "team_service": "b"}, "b", "10.1.2.3", id="own name first"),
        pytest.param({"service_name": "a", "pod": "p 1"}, "a", "p-1", id="pod"),
    ],
)
def test_names_of_labels_can_be_set(labels: Mapping[str, str], service: str, host: str) -> None:
    names = LabelNames({**DEFAULT_NAMES, "service": ("team_service", "service_name")}, keep=("zone",))
    sent = request(pushed(pprof(), labels={**labels, "zone": "z"}).SerializeToString())
    (profile,) = profiles(decode(pyroscope_push.RECEIVER, sent, DecodeSetup(names)))
    assert (profile.service, profile.host, profile.labels) == (service, host, {"zone": "z"})


@pytest.mark.parametrize(
    ("peer", "address"),
    [("ipv4:10.0.0.1:4711", "10.0.0.1"), ("ipv6:%5B::1%5D:4711", "::1"), ("unix:", "unix")],
)
def test_the_address_of_a_client_of_grpc(peer: str, address: str) -> None:
    assert peer_address(peer) == address
