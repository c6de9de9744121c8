"""The figures of docs/maths are drawn from the code, and stand where the pages look for them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loadgen.evaluation.maths_figures import FIGURES, write_figures
from tests.support.paths import ROOT

MATHS = ROOT / "docs" / "maths"


@pytest.mark.slow
def test_figures_are_drawn(tmp_path: Path) -> None:
    written = write_figures(tmp_path)
    assert [path.stem for path in written] == list(FIGURES)
    assert all(path.read_text(encoding="utf-8").count("<path") > 10 for path in written)


def test_each_figure_is_shown_on_one_page() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in MATHS.glob("*.md"))
    shown = re.findall(r"\]\(figures/([\w-]+)\.svg\)", pages)
    assert sorted(shown) == sorted(FIGURES) == sorted(path.stem for path in (MATHS / "figures").glob("*.svg"))
