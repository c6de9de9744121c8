"""A new kind of target is a class and a line of the registry: rules, deliveries and commands know it then."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from click.testing import CliRunner

from pipeline.cli import smidgen
from pipeline.delivery.alerts.markup import as_plain
from pipeline.delivery.alerts.message import Note
from pipeline.delivery.alerts.targets import KINDS, Http, Target, TargetRefused


class Board(Target):
    """A board on the wall, which is a file here."""

    kind: Literal["board"]
    file: Path

    async def send(self, note: Note, thread: str, http: Http) -> str:
        """Write on it."""
        if not self.file.parent.is_dir():
            raise TargetRefused("there is no wall")
        self.file.write_text(as_plain(note.lines))
        return ""


@pytest.fixture(autouse=True)
def board(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "board", Board)


@pytest.mark.parametrize(("name", "code"), [("board.txt", 0), ("no/wall.txt", 1)])
def test_a_board_takes_a_test(tmp_path: Path, name: str, code: int) -> None:
    rules = tmp_path / "alerts.yaml"
    rules.write_text(
        f"targets: {{wall: {{kind: board, file: {tmp_path / name}}}}}\nrules: [{{to: [wall]}}]\n"
    )
    done = CliRunner().invoke(smidgen, ["alerts", "test", "--rules", str(rules)], standalone_mode=False)
    assert done.return_value == code, done.output
    assert done.output == ("wall: took it\n" if code == 0 else "wall: there is no wall\n")
    if code == 0:
        assert "takes 32.2% more CPU" in (tmp_path / name).read_text()
