"""OTLP profiles as stacks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from agents.gateway import otlp_profiles
from agents.gateway.base import DecodeSetup, Refusal, Request
from agents.gateway.intake import decode_request
from agents.profiles.formats import Measure, ProfileSource, parse, read_profile
from agents.profiles.formats.otlp import OTLP, OtlpFormat
from agents.profiles.message import ProfileOrigin
from agents.profiles.profile_files import Import, read_files
from pipeline.model.errors import ConfigError
from tests.support.gateway_requests import NOW, PROTO, exported
from tests.support.profile_files import otlp

FORMAT = OtlpFormat()


def changed(*samples: dict[str, object], **tables: dict[str, object]) -> bytes:
    data = OTLP["ProfilesData"].FromString(otlp())
    (profile,) = data.resource_profiles[0].scope_profiles[0].profiles
    for sample in samples:
        profile.samples.add(**sample)
    for name, entry in tables.items():
        getattr(data.dictionary, name).add(**entry)
    return bytes(data.SerializeToString())


def test_files_lines_and_addresses() -> None:
    records = list(read_profile(FORMAT, ProfileSource.of(changed({"stack_index": 3, "values": [2]}))).records)
    assert records == [
        (("main (/srv/app.go:5)", "work"), 3),
        (("main (/srv/app.go:5)",), 1),
        (("main (/srv/app.go:5)", "0x1f (/lib/libc.so.6)"), 2),
    ]


def test_time_has_its_period() -> None:
    parsed = parse(FORMAT, otlp(("cpu", "nanoseconds"), period=1))
    assert parsed.measure == Measure("cpu", "nanoseconds", 1)
    assert parsed.samples == 4
    with pytest.raises(ConfigError, match="has no value 'wall': there are cpu"):
        parse(FORMAT, otlp(("cpu", "nanoseconds")), "wall")


@pytest.mark.parametrize(
    ("periods", "period", "samples"),
    [((10, 10), 10, 8), ((10, 40), 16, 5), ((10, 0), 0, 80)],
    ids=["equal", "different", "one unknown"],
)
def test_resources_may_sample_at_different_rates(
    periods: tuple[int, int], period: float, samples: int
) -> None:
    data = OTLP["ProfilesData"]()
    for period_ns in periods:
        part = OTLP["ProfilesData"].FromString(otlp(("cpu", "nanoseconds"), period=period_ns))
        (profile,) = part.resource_profiles[0].scope_profiles[0].profiles
        del profile.samples[1:]
        profile.samples[0].values[:] = [40]
        data.MergeFrom(part)
    del data.dictionary.string_table[7:]
    parsed = parse(FORMAT, data.SerializeToString())
    assert (parsed.measure.period, parsed.samples) == (period, samples)


@pytest.mark.parametrize(
    ("services", "is_refused"), [(("shop", "till"), True), (("shop", "shop"), False), (("shop", ""), False)]
)
def test_a_file_of_several_services_is_not_imported_as_one(
    services: Sequence[str], is_refused: bool, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(exported(*services).SerializeToString())
    request = Import(ProfileOrigin("shop", "h"), 1e9, 60.0, 10_000)
    if is_refused:
        with pytest.raises(
            ConfigError, match=r"2 services \(shop, till\), and --service names one: send it to"
        ):
            read_files([tmp_path / "a"], request)
    else:
        assert read_files([tmp_path / "a"], request)[0].parsed.samples == 14


@pytest.mark.parametrize(
    "sample",
    [
        pytest.param({"stack_index": 99, "values": [1]}, id="no such stack"),
        pytest.param({"stack_index": -1, "values": [1]}, id="a negative index"),
        pytest.param({"stack_index": 4, "values": [1]}, id="no such location"),
        pytest.param({"stack_index": 1, "values": [-1]}, id="a negative value"),
    ],
)
def test_what_makes_no_sense_is_invalid(sample: dict[str, object]) -> None:
    parsed = parse(FORMAT, changed(sample, stack_table={"location_indices": [77, -2]}))
    assert (parsed.samples, parsed.invalid) == (4, 1)
    assert parsed.first_invalid.startswith("sample 3")


@pytest.mark.parametrize("data", [b"", otlp()[:-3], b"\x0a\xff", b"\xff" * 9])
def test_damage_is_one_invalid_record(data: bytes) -> None:
    parsed = parse(FORMAT, data)
    assert (dict(parsed.stacks), parsed.invalid) == ({}, 1)


def test_an_older_version_is_named_and_not_taken_for_an_idle_service() -> None:
    """Its profiles have lists where numbers are now, and its dictionary units where stacks are now."""
    ours = OTLP["ProfilesData"].FromString(otlp())
    (profile,) = ours.resource_profiles[0].scope_profiles[0].profiles
    profile.MergeFromString(b"\x1a\x02\x01\x00")  # field 3: a list of two locations
    without = OTLP["ProfilesData"].FromString(otlp())
    without.dictionary.ClearField("stack_table")
    for data in (ours, without):
        parsed = parse(FORMAT, data.SerializeToString())
        assert (parsed.samples, parsed.invalid) == (0, 1)
        assert "a version before 1.8" in parsed.first_invalid
        sent = Request("/", data.SerializeToString(), NOW, headers=PROTO)
        with pytest.raises(Refusal, match=r"a version before 1\.8"):
            decode_request(otlp_profiles.RECEIVER, sent, DecodeSetup())
