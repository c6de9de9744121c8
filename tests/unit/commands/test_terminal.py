"""What others wrote reaches the terminal without its control sequences."""

from __future__ import annotations

import json
from pathlib import Path

import orjson
import pytest
from rich.text import Text

from pipeline.cli import run
from pipeline.commands.events import Event, describe
from pipeline.commands.terminal import escape_controls, escape_line, table_console
from pipeline.messages.events import regression_event, regression_id
from pipeline.model import Change, Regression, Scan, Suspect
from tests.support.builders import build_candidate
from tests.support.repositories import Work

RED = "\x1b[31mred"
SHOWN = r"\x1b[31mred"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("Prix à 3 € – ¥", "Prix à 3 € – ¥", id="plain"),
        pytest.param("a\u3000b\u00a0c", "a\u3000b\u00a0c", id="spaces of other scripts"),
        pytest.param(RED, SHOWN, id="colour"),
        pytest.param("\x9b31m", r"\x9b31m", id="in one character"),
        pytest.param("\x1b]0;title\x07", r"\x1b]0;title\x07", id="window's title"),
        pytest.param("a\r\nb\tc\b", r"a\r\nb\tc\x08", id="lines and places"),
        pytest.param("a\u2028b", r"a\u2028b", id="Unicode's line end"),
        pytest.param("\u202egnp.exe", r"\u202egnp.exe", id="direction of writing"),
        pytest.param("\udcff", r"\udcff", id="a byte that is no text"),
    ],
)
def test_controls_are_escaped(text: str, shown: str) -> None:
    assert escape_controls(text) == shown


def test_names_are_no_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    table_console().print("latency GET /cart/:id: by pairs")
    assert capsys.readouterr().out == "latency GET /cart/:id: by pairs\n"


def test_a_line_keeps_its_styles() -> None:
    line = escape_line(Text.assemble(("a\x1b", "bold"), " b ", ("\x9bc", "red"), style="dim"))
    assert line.plain == r"a\x1b b \x9bc"
    assert [(line.plain[span.start : span.end], span.style) for span in line.spans] == [
        (r"a\x1b", "bold"),
        (r"\x9bc", "red"),
    ]
    assert line.style == "dim"


def test_a_commit_is_shown_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = Work(tmp_path / "repo")
    work.commit(f"Turn {RED}\u202e", {f"{RED}.py": "def f(:\n"})
    command = ["changes", "--service", "shop", "--repo", str(work.path), "--dry-run"]
    assert run(command) == 0
    out, err = capsys.readouterr()
    assert rf" Turn {SHOWN}\u202e (" in out
    assert f"{SHOWN}.py" in err
    assert "\x1b" not in out + err
    assert run([*command, "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert (output["title"], output["files"]) == (f"Turn {RED}\u202e", [f"{RED}.py"]), (
        "machines get it as it is"
    )


SUSPECT = {"id": RED, "title": RED, "author": RED}


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        pytest.param(
            {"id": RED, "data": {"metric": RED, "service": RED, "root_causes": [{"change": SUSPECT}]}},
            [f"  suspect {SHOWN} {SHOWN} by {SHOWN}  score 0.00", f"  id      {SHOWN}"],
            id="a suspect",
        ),
        pytest.param(
            {"id": "1", "data": {"group": [{"metric": RED}]}}, [f"  with    {SHOWN}"], id="its group"
        ),
        pytest.param(
            {"id": "1", "type": "smidgen.regression.resolved", "data": {"resolved_by": [SUSPECT]}},
            [f"  fix     {SHOWN} {SHOWN} by {SHOWN}"],
            id="a fix",
        ),
    ],
)
def test_events_are_shown_escaped(event: Event, lines: list[str]) -> None:
    shown = [line.plain for line in describe(event)]
    assert set(lines) <= set(shown)
    assert "\x1b" not in "".join(shown)


def test_a_story_is_shown_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    start = 1_700_000_000.0
    found = build_candidate(f"cart.{RED}", change_time=start + 60)
    scan = Scan("shop", "live", start, start + 30, start + 70, start + 75, 9, (found,), ())
    change = Change(RED, "shop", start + 59, RED, RED)
    name = regression_id("shop", "live", found, scan.end)
    regression = Regression(name, "shop", "live", found, scan.end, (Suspect(change, 0.9, {}),))
    Path("events.jsonl").write_bytes(orjson.dumps(regression_event(regression, scan)) + b"\n")
    command = ["why", "--ledger", "events.jsonl"]
    assert run([*command, name]) == 0
    story = capsys.readouterr()
    assert f"suspect  {SHOWN} {SHOWN} by {SHOWN}, score 0.90" in story.out
    assert run(command) == 0
    listed = capsys.readouterr()
    assert f"cart.{SHOWN}" in listed.out
    assert "\x1b" not in story.out + story.err + listed.out


def test_an_error_is_shown_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["detect", "\x1b[31mhostile.csv"]) == 2
    assert "\x1b" not in capsys.readouterr().err
