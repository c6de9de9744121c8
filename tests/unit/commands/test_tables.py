"""Columns of tables: how cells are written, in Markdown and in a terminal."""

from __future__ import annotations

import math

import pytest

from pipeline.commands.tables import Column, TextTable, markdown_table, print_table

COLUMNS: tuple[Column[dict[str, object]], ...] = (
    Column("name"),
    Column("share", form=".1%"),
    Column("twice", lambda row: f"2 {row['name']}"),
    Column("size", form="{} MB".format),
)


def test_markdown_has_numbers_to_the_right_and_a_dash_where_there_is_none() -> None:
    rows = [{"name": "a", "share": 0.25, "size": 3}, {"name": "b", "share": math.nan, "size": None}]
    assert list(markdown_table(COLUMNS, rows)) == [
        "| name | share | twice | size |",
        "| --- | ---: | --- | ---: |",
        "| a | 25.0% | 2 a | 3 MB |",
        "| b | – | 2 b | – |",
    ]


def test_texts_cannot_steer_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(COLUMNS[:1], [dict[str, object](name="\x1b[31mred")])
    assert r"\x1b[31mred" in capsys.readouterr().out


def test_a_titled_table_has_a_heading_and_lines_in_its_cells() -> None:
    table = TextTable("All | of it", ("what", "share"), [("a|b", "1 %\n(0–2)")])
    assert table.markdown().splitlines() == [
        "## All | of it",
        "",
        "| what | share |",
        "| --- | ---: |",
        "| a\\|b | 1 %<br>(0–2) |",
    ]
