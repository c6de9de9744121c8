"""The documents as a site: every page is in it, and nothing of it comes from another address."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from mkdocs.commands.build import build
from mkdocs.config import load_config

from tests.support.paths import ROOT

CONFIG = ROOT / "deploy" / "site" / "mkdocs.yml"
INDEXED = ("maths/", "decisions/")
"""Folders whose own README leads on to their pages."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` does."""
    folder = tmp_path_factory.mktemp("site")
    build(load_config(str(CONFIG), site_dir=str(folder), strict=True))
    return folder


def test_every_page_is_in_the_navigation() -> None:
    text = CONFIG.read_text(encoding="utf-8")
    named = set(re.findall(r": ([\w/.-]+\.md)$", text, re.MULTILINE))
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert named == {page for page in pages if not page.startswith(INDEXED) or page.endswith("README.md")}
    assert yaml.safe_load(text)["docs_dir"] == "../../docs"


def test_the_site_loads_nothing_from_another_address(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r"<(?:script|img|iframe)[^>]+src=[\"']?(?:https?:)?//", text), page.name
        assert not re.findall(r"<link[^>]+href=[\"']?(?:https?:)?//", text), page.name
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert not re.findall(r"url\([\"']?(?:https?:)?//", styles)
