"""Common parts of every page: store, snapshot, templates, person; and bounds on its work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, TypeVar

from aiohttp import web
from jinja2 import Environment
from jinja2.meta import find_referenced_templates

from pipeline import __version__
from pipeline.model import Change, Silence, Verdict
from pipeline.model.clock import Clock, system_clock
from pipeline.model.errors import ConfigError
from pipeline.processes import TaskSupervisor
from pipeline.settings.url_template import fill, source_url
from pipeline.settings.workloads import Workload
from pipeline.storage.interface import Store
from pipeline.views.dashboard.access import Forms, Login, Person
from pipeline.views.dashboard.board import Board
from pipeline.views.dashboard.item import Item
from pipeline.views.dashboard.stream import Stream
from pipeline.views.dashboard.verdicts import BUTTONS
from pipeline.views.dashboard.words import FILTERS, ago
from pipeline.views.report.page import environment

LOOK_AGAIN_S = 1.0
"""Shortest interval between queries for a regression that the snapshot lacks."""

THREADS = 4
"""Most parallel reads of the store; others wait, but pages from the snapshot do not."""

Answer = TypeVar("Answer")

TEMPLATES = Path(__file__).with_name("templates")


class Finding(Protocol):
    """One line of what ``smidgen doctor`` finds."""

    @property
    def check(self) -> str:
        """The checked thing."""

    @property
    def status(self) -> str:
        """One of ok, warn and fail."""

    @property
    def detail(self) -> str:
        """The result."""

    @property
    def advice(self) -> str:
        """What to do; empty if nothing."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources of a dashboard's data, and the destination of its answers."""

    store: Store
    workloads: Mapping[str, Workload] = field(default_factory=dict)  # by name: windows of the series
    say: Callable[[Verdict | Silence], Awaitable[None]] | None = (
        None  # publishes verdicts; without it there are no buttons
    )
    diagnose: Callable[[], Sequence[Finding]] | None = None  # blocks
    clock: Clock = system_clock
    diff_url: str = ""  # URL of a change, with {change} and {service}; empty: none
    source_url: str = ""  # URL of a line, checked by check_source_url; empty: none


class Site:
    """State of one dashboard; several dashboards can share one ``secret``."""

    def __init__(self, sources: Sources, login: Login, secret: str = "") -> None:
        self.sources = sources
        self.login = login
        self.forms = Forms(secret or login.token or "")
        self.board = Board(sources.store, sources.clock, workloads=sources.workloads)
        self.stream = Stream(self.board)
        self.tasks = TaskSupervisor()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="dashboard")
        self._drawing = asyncio.Lock()
        self._looking = asyncio.Lock()
        self._looked_at = float("-inf")
        self._templates = {ratio: self._environment(ratio=ratio) for ratio in (True, False)}

    @property
    def store(self) -> Store:
        """The store of the sources."""
        return self.sources.store

    async def read(self, function: Callable[..., Answer], *given: Any) -> Answer:
        """Run a function that reads the store in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *given)

    async def find(self, key: str) -> Item | None:
        """Return a regression by its id, also one newer than the snapshot: an alert may come first."""
        async with self._looking:  # who asks meanwhile waits for the same look
            now = self.sources.clock()
            if key not in self.board.snapshot.by_id and now >= self._looked_at + LOOK_AGAIN_S:
                self._looked_at = now
                await self.read(self.board.refresh)
        return self.board.snapshot.by_id.get(key)

    async def draw(self, function: Callable[..., Answer], *given: Any) -> Answer:
        """Run a function that reads and draws much, such as the stacks of a service: one at a time."""
        async with self._drawing:
            return await self.read(function, *given)

    def render(
        self, request: web.Request, template: str, *, ratio: bool = True, **given: Any
    ) -> web.Response:
        """Return a page; ``ratio`` writes levels in per cent."""
        person: Person | None = request.get("person")  # nobody before a login
        text = (
            self._templates[ratio]
            .get_template(template)
            .render(
                ratio=ratio,
                person=person,
                version_of_code=__version__,
                buttons=BUTTONS,
                open_total=sum(self.board.snapshot.open_items().values()),
                form_token=self.forms.token(person) if person else "",
                sessions=self.login.sessions,
                may_answer=person is not None and person.may_answer and self.sources.say is not None,
                path=request.path,
                problem=self.tasks.problem() if person and person.may_read else "",
                version=self.board.snapshot.version,
                now=self.sources.clock(),
                **given,
            )
        )
        return web.Response(text=text, content_type="text/html")

    def compile_templates(self) -> None:
        """Compile the templates of pages, and the parts of reports that they include."""
        texts = {path.name: path.read_text("utf-8") for path in TEMPLATES.glob("*.html")}
        for templates in self._templates.values():
            parts = (find_referenced_templates(templates.parse(text)) for text in texts.values())
            for name in {*texts, *filter(None, chain(*parts))}:
                templates.get_template(name)

    def workload(self, name: str) -> Workload:
        """Return the workload of a name.

        Raises:
            ConfigError: it is not known here.
        """
        if name not in self.sources.workloads:
            raise ConfigError(f"workload {name!r} is not known here; name its file with --workloads")
        return self.sources.workloads[name]

    def close(self) -> None:
        """Shut the threads down."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def diff_url(self, change: Change) -> str:
        """Return the address of a change's diff."""
        return fill(self.sources.diff_url, {"change": change.id, "service": change.service})

    def source_url(self, change: Change, path: str, line: int) -> str:
        """Return the address of a line of a change; empty without one."""
        return source_url(self.sources.source_url, change.service, change.id, path, line)

    def _environment(self, *, ratio: bool) -> Environment:
        templates = environment(ratio=ratio, folders=(TEMPLATES,))
        templates.filters.update(FILTERS)
        templates.filters["ago"] = lambda time: ago(self.sources.clock() - time)
        templates.globals["diff_url"] = self.diff_url if self.sources.diff_url else None
        templates.globals["source_url"] = self.source_url
        return templates


SITE = web.AppKey("site", Site)


def site_of(request: web.Request) -> Site:
    """Return the dashboard of a request."""
    return request.app[SITE]
