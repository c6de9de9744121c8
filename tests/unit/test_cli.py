"""Ctrl-C ends any command with 130, also amid what it imports."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from pipeline import cli
from pipeline.commands import lazy_group


def plain(_name: str) -> None:
    raise KeyboardInterrupt


def amid_a_class(_name: str) -> None:
    class Field:
        def __set_name__(self, _owner: type, _name: str) -> None:
            raise KeyboardInterrupt

    type("Definition", (), {"field": Field()})


@pytest.mark.parametrize("imported", [plain, amid_a_class])
def test_ctrl_c_amid_an_import(imported: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_group, "load", imported)
    assert cli.run(["gateway"]) == 130


def test_another_error_of_a_class_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_name: str) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(lazy_group, "load", broken)
    with pytest.raises(RuntimeError, match="broken"):
        cli.run(["gateway"])


@pytest.mark.parametrize(("given", "threads"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")])
def test_linear_algebra_has_one_thread_unless_more_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], threads: str
) -> None:
    monkeypatch.setattr("sys.argv", ["smidgen", "--version"])
    monkeypatch.setattr("os.environ", dict(given))
    with pytest.raises(SystemExit):
        cli.main()
    assert os.environ["OPENBLAS_NUM_THREADS"] == threads
    assert os.environ["OMP_NUM_THREADS"] == "1"
