"""Lines of the log as machines read them."""

from __future__ import annotations

import logging
import re
from typing import Any

import orjson
import pytest

from pipeline.telemetry.logs import FIELDS, formatter
from tests.support.open_faults import open_fault
from tests.support.paths import ROOT


def line(text: str = "said", **extra: Any) -> dict[str, Any]:
    record = logging.makeLogRecord(
        {"name": "pipeline.x", "levelname": "WARNING", "levelno": 30, "msg": text, "created": 1_700_000_000.5}
        | extra
    )
    written = formatter("json").format(record)
    assert "\n" not in written
    parsed: dict[str, Any] = orjson.loads(written)
    return parsed


def test_one_object_with_time_level_and_position() -> None:
    assert line(stage="aggregate", topic="profiles", partition=3, offset=0, service="shop") == {
        "time": "2023-11-14T22:13:20.500Z",
        "level": "warning",
        "logger": "pipeline.x",
        "message": "said",
        **{"stage": "aggregate", "service": "shop", "topic": "profiles", "partition": 3, "offset": 0},
    }


def test_what_does_not_apply_is_absent() -> None:
    assert set(line(stage=None, other=1)) == {"time", "level", "logger", "message"}


def test_a_traceback_is_one_field() -> None:
    try:
        raise KeyError("lost")
    except KeyError as error:
        found = line(exc_info=(type(error), error, error.__traceback__))
    assert found["exception"].startswith("Traceback")
    assert found["exception"].endswith("KeyError: 'lost'")


@pytest.mark.parametrize(
    "value",
    [{1: "x"}, object(), {1.5}, 2**70, "\udcff"],
    ids=["mapping", "object", "set", "integer", "surrogate"],
)
def test_whatever_is_logged_a_line_comes_out(value: object) -> None:
    assert line(service=value)["message"] == "said"
    assert line("text \udcff\nand \x1b[31m")["level"] == "warning"


def test_text_is_as_it_always_was() -> None:
    record = logging.makeLogRecord(
        {"name": "pipeline.x", "levelname": "INFO", "msg": "said %d", "args": (1,)}
    )
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO pipeline.x said 1", formatter("text").format(record)
    )


def test_every_field_that_code_gives_is_written() -> None:
    given = set()
    for file in (ROOT / "pipeline").rglob("*.py"):
        for block in re.findall(r"extra=\{([^}]*)\}", file.read_text(encoding="utf-8")):
            given |= set(re.findall(r'"(\w+)":', block))
    assert given
    assert given <= set(FIELDS)


@open_fault("44.15", "names reach the text log as they are: a line break in a service's name forges a line")
@pytest.mark.parametrize("character", ["\n", "\x1b", "\u202e", "\u200b"], ids=ascii)
def test_a_name_cannot_forge_a_line_of_text(character: str) -> None:
    record = logging.makeLogRecord({"msg": "service=%s beyond its quota", "args": (f"shop{character}x",)})
    assert character not in formatter("text").format(record)
