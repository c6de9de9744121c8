"""Requests in the forms that clients of the gateway send."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from typing import Any

import cramjam
import orjson

from agents.gateway.parca import PARCA
from agents.gateway.pyroscope_push import PUSH
from agents.inprocess.messages import Interval, build_messages
from agents.inprocess.options import Identity
from agents.profiles.formats import Measure, Sample
from agents.profiles.formats.otlp import OTLP
from agents.profiles.formats.pprof import PPROF
from agents.profiles.formats.writers import WRITERS

NOW = 1_790_000_000.0

PROTO = {"content-type": "application/x-protobuf"}
BOUNDARY = "f4a55c4d7884f308"
FORM = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}


def pprof(measure: Measure | None = None) -> bytes:
    out = io.BytesIO()
    samples = [Sample(("main", "price"), 3 * 10**7), Sample(("main", "pay"), 10**7)]
    WRITERS["pprof"](iter(samples), measure or Measure("cpu", "nanoseconds", 1e7), out)
    return out.getvalue()


def form(**fields: bytes) -> bytes:
    lines = [
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n'
        f"Content-Type: application/octet-stream\r\n\r\n".encode()
        + content
        + b"\r\n"
        for name, content in fields.items()
    ]
    return b"".join(lines) + f"--{BOUNDARY}--\r\n".encode()


LABELS = {"__name__": "process_cpu", "service_name": "shop", "hostname": "h1"}


def pushed(*profiles: bytes, labels: Mapping[str, str] = LABELS) -> Any:
    message = PUSH["Request"]()
    series = message.series.add()
    for name, value in labels.items():
        series.labels.add(name=name.encode(), value=value.encode())
    for number, profile in enumerate(profiles):
        series.samples.add(raw_profile=profile, ID=f"id-{number}".encode())
    return message


def written(*profiles: bytes) -> Any:
    message = PARCA["Request"]()
    series = message.series.add()
    for name, value in LABELS.items():
        series.labels.labels.add(name=name.encode(), value=value.encode())
    for profile in profiles:
        series.samples.add(raw_profile=profile)
    return message


def as_json(labels: Any) -> bytes:
    raw = base64.b64encode(pprof()).decode()
    return orjson.dumps({"series": [{"labels": labels, "samples": [{"rawProfile": raw}]}]})


def exported(*services: str) -> Any:
    message = OTLP["ProfilesData"]()
    tables = message.dictionary
    tables.string_table.extend([b"", b"samples", b"count", b"cpu", b"nanoseconds", b"main", b"price"])
    for number in (0, 5, 6):
        tables.function_table.add(name_strindex=number)
        tables.location_table.add().lines.add(function_index=len(tables.function_table) - 1)
    tables.stack_table.add()
    tables.stack_table.add(location_indices=[2, 1])
    for service in services:
        resource = message.resource_profiles.add()
        for name, value in {"service.name": service, "host.name": "h1", "service.version": "7"}.items():
            if value:
                resource.resource.attributes.add(key=name.encode()).value.string_value = value.encode()
        profile = resource.scope_profiles.add().profiles.add(
            time_unix_nano=int((NOW - 10) * 1e9), duration_nano=10**10, period=5 * 10**7
        )
        profile.sample_type.type_strindex, profile.sample_type.unit_strindex = 1, 2
        profile.period_type.type_strindex, profile.period_type.unit_strindex = 3, 4
        profile.samples.add(stack_index=1, values=[7])
    return message


def libdatadog_pprof() -> bytes:
    """Return a profile as libdatadog writes it: samples before all tables, and a period of a nanosecond.

    Its counts include a waiting thread: ``main;price`` for 4 s and ``main;wait`` have 400 samples each.
    """
    profile = PPROF["Profile"]
    words = ["", "cpu-time", "nanoseconds", "cpu-samples", "count", "main", "price", "wait"]
    words += ["trace endpoint", "/b"]
    tables = profile(string_table=[word.encode() for word in words], period=1)
    tables.period_type.type, tables.period_type.unit = 1, 2
    tables.sample_type.add(type=1, unit=2)
    tables.sample_type.add(type=3, unit=4)
    for number, name in enumerate((5, 6, 7), 1):
        tables.function.add(id=number, name=name)
        tables.location.add(id=number).line.add(function_id=number)
    samples = profile()
    samples.sample.add(location_id=[2, 1], value=[4 * 10**9, 400]).label.add(key=8, str=9)
    samples.sample.add(location_id=[3, 1], value=[10**6, 400])
    return bytes(samples.SerializeToString() + tables.SerializeToString())


def datadog_event(**changed: Any) -> bytes:
    event = {
        "attachments": ["profile.pprof"],
        "tags_profiler": "service:shop,version:v7,region:eu,service:other",
        "start": "2026-09-21T14:12:50.123456789Z",
        "end": "2026-09-21T14:13:00Z",
        "family": "python",
        "version": "4",
        "internal": {"sampling_interval_us": 3458},
    }
    return orjson.dumps({**event, **changed})


def datadog(**files: bytes) -> bytes:
    parts = files or {"profile.pprof": bytes(cramjam.zstd.compress(libdatadog_pprof()))}
    return form(event=datadog_event(), **parts)


def message(stacks: Mapping[tuple[str, ...], int]) -> bytes:
    """Return a message of the sampler inside Python applications."""
    interval = Interval(NOW - 10, NOW, 20.0, stacks)
    [built] = build_messages(interval, Identity("shop", "h1", "v7", {"region": "eu"}), "id-1")
    return built.value
