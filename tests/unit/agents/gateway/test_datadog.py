"""Datadog's intake: what ddtrace and dd-trace-go send, as messages, and what is refused."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from typing import Any

import cramjam
import pytest

from agents.gateway import datadog
from agents.gateway.base import Decoded, DecodeSetup, Refusal, Request
from agents.gateway.intake import decode_request
from agents.gateway.receivers import RECEIVERS
from agents.profiles.formats import AUTO, Measure, ProfileSource, find_format
from pipeline.messages.measurements import decode_profile
from pipeline.model import Profile
from tests.support import gateway_requests as requests
from tests.support import profile_files
from tests.unit.agents.gateway.support import NOW, stacks_of


def decode(body: bytes, headers: Mapping[str, str] = {}) -> Decoded:
    sent = Request("/profiling/v1/input", body, NOW, "10.1.2.3", {}, {**requests.FORM, **headers})
    return decode_request(datadog.RECEIVER, sent, DecodeSetup())


def profiles(decoded: Decoded) -> list[Profile]:
    return [decode_profile(part.message.value, now=NOW) for part in decoded.parts]


@pytest.mark.parametrize(
    "pack",
    [
        pytest.param(bytes, id="plain"),
        pytest.param(gzip.compress, id="gzip"),
        pytest.param(lambda data: bytes(cramjam.zstd.compress(data)), id="zstd"),
        pytest.param(lambda data: bytes(cramjam.lz4.compress(data)), id="lz4"),
    ],
)
def test_what_ddtrace_sends(pack: Any) -> None:
    packed = {"profile.pprof": pack(requests.libdatadog_pprof()), "code-provenance.json": pack(b"{}")}
    decoded = decode(requests.datadog(**packed))
    (profile,) = profiles(decoded)
    assert (profile.service, profile.host, profile.release) == ("shop", "10.1.2.3", "v7")
    assert profile.labels == {"region": "eu"}
    assert profile.start == pytest.approx(NOW - 29.8765, abs=1e-3)
    assert profile.end == NOW - 20
    assert [(each.reason, each.is_wrong) for each in decoded.skipped] == [("not_cpu", False)]


def test_cpu_time_counts_and_not_the_samples_of_threads_that_wait() -> None:
    """A sample is 5 ms, the step under the 3.458 ms that the client samples at: 4 s are 800 of them."""
    (profile,) = profiles(decode(requests.datadog()))
    assert profile.rate_hz == 200
    assert stacks_of(profile) == {"endpoint=/b;main;price": 800}


@pytest.mark.parametrize(
    ("interval_us", "rate_hz"),
    [(10_000, 100), (3_458, 200), (5_000, 200), (5_001, 100), (100_000, 6.25), (1, 800), (1e8, 0.78125)],
)
def test_a_rate_is_at_most_the_true_one_within_bounds(interval_us: float, rate_hz: float) -> None:
    assert datadog.counted_hz(interval_us) == rate_hz


def test_what_go_sends_has_its_own_period_beside_flight_recordings_of_an_agents_host() -> None:
    heap = requests.pprof(Measure("inuse_space", "bytes"))
    files = {"cpu.pprof": requests.pprof(), "delta-heap.pprof": heap}
    decoded = decode(requests.datadog(**files, main=gzip.compress(profile_files.FILES["jfr"])))
    profile, recording = profiles(decoded)
    assert (profile.rate_hz, stacks_of(profile)) == (100, {"main;price": 3, "main;pay": 1})
    assert recording.counts.sum() > 0
    assert {each.reason for each in decoded.skipped} == {"not_cpu"}
    headers = {datadog.ADDITIONAL_TAGS: "host:web-1,default_env:prod,version:agent"}
    (passed_on,) = profiles(decode(requests.datadog(), headers))
    assert (passed_on.host, passed_on.release) == ("web-1", "v7")


def test_two_files_of_one_content_are_two_messages_and_each_again_is_one() -> None:
    files = {"a.pprof": requests.pprof(), "b.pprof": requests.pprof()}
    first, again = decode(requests.datadog(**files)), decode(requests.datadog(**files))
    assert len({part.id for part in first.parts}) == 2
    assert [part.id for part in first.parts] == [part.id for part in again.parts]


def test_a_wrong_file_does_not_take_the_others_with_it() -> None:
    files = {"cpu.pprof": requests.pprof(), "bad.pprof": b"\x1f\x8bxx", "cut.jfr": b"FLR\0\0\x02\0\0"}
    decoded = decode(requests.datadog(**files))
    assert len(decoded.parts) == 1
    assert [each.text.split(":")[0] for each in decoded.skipped] == ["bad.pprof", "cut.jfr"]


@pytest.mark.parametrize(
    ("body", "headers", "said"),
    [
        pytest.param(b"{}", {"content-type": "application/json"}, "multipart/form-data", id="no form"),
        pytest.param(requests.form(data=b"x"), {}, "event.json: update the client", id="an old client"),
        pytest.param(requests.form(event=b"{"), {}, "not JSON", id="no JSON"),
        pytest.param(requests.form(event=b"[]"), {}, "event: should be an object", id="a list"),
        pytest.param(
            requests.form(event=requests.datadog_event(tags_profiler=3)), {}, "tags_profiler", id="tags"
        ),
        pytest.param(
            requests.form(event=requests.datadog_event(start="yesterday")),
            {},
            "start should be",
            id="no time",
        ),
        pytest.param(requests.form(event=requests.datadog_event(internal=3)), {}, "internal", id="internal"),
    ],
)
def test_what_makes_no_sense_is_refused(body: bytes, headers: Mapping[str, str], said: str) -> None:
    with pytest.raises(Refusal, match=said) as refused:
        decode(body, headers)
    assert refused.value.status == 400


def test_it_is_one_of_the_receivers_and_its_profiles_are_recognised() -> None:
    assert datadog.RECEIVER in RECEIVERS
    assert find_format(AUTO, ProfileSource.of(requests.libdatadog_pprof()).head).name == "pprof"
