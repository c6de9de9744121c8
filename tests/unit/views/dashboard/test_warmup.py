"""What is done before the server listens, so that no first request waits for it."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest
from jinja2 import Environment

from pipeline.storage.arrays import ArrayStore
from pipeline.views.dashboard import Login, Sources
from pipeline.views.dashboard.site import TEMPLATES, Site
from pipeline.views.dashboard.warmup import warm_up


def test_all_templates_are_compiled_and_what_they_include(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: set[str] = set()
    compile_it = Environment.compile

    def noted(self: Environment, source: str, name: str, filename: str) -> object:
        compiled.add(Path(filename).name)
        return compile_it(self, source, name, filename)

    monkeypatch.setattr(Environment, "compile", noted)

    async def warm() -> None:
        site = Site(Sources(ArrayStore()), Login())
        warm_up(site)
        site.close()

    try:
        asyncio.run(warm())
    finally:
        gc.unfreeze()
    assert {path.name for path in TEMPLATES.glob("*.html")} | {"shifts.html", "bar.html"} <= compiled
