"""Trials: the list of experiments, one experiment with its details, and models' errors on A/A tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from pipeline.messages.fields import EARLIEST_S
from pipeline.model.clock import from_iso
from pipeline.model.errors import ConfigError
from pipeline.model.units import DAY_S
from pipeline.stages.gather.trials import gather_differences
from pipeline.views.dashboard.experiments import (
    VERDICTS,
    ExperimentPage,
    is_number,
    read_experiment,
    read_list,
    read_query,
)
from pipeline.views.dashboard.figures import figure_json
from pipeline.views.dashboard.model_choices import count_tests, read_courses, read_services
from pipeline.views.dashboard.site import Site, site_of
from pipeline.views.dashboard.trial_figures import draw_course, draw_differences
from pipeline.views.dashboard.trial_words import about_model, difference, discarded, interval, why_model

routes = web.RouteTableDef()

BADGES: Mapping[str, str] = {
    "fail": "new",
    "not enough": "acknowledged",
    "pass": "fixed",
    "running": "expected",
}
"""Verdict → state of a regression whose badge colours it uses."""

MOST_DRAWN = 6
"""Metrics whose details are shown at once, failed ones first; others on request."""

MOST_LINES = 300
"""Most metrics in the table of models."""

RECENT_S = 90 * DAY_S
"""Age of choices up to which the table shows them; a metric's own page has all of its choices."""

_WORDS: Mapping[str, Any] = {"difference": difference, "interval": interval, "badges": BADGES}


@routes.get("/trials")
async def show_list(request: web.Request) -> web.Response:
    """Show the experiments that the URL selects."""
    site = site_of(request)
    query = read_query(request.query)
    page = await site.read(read_list, site.store, query, site.sources.clock())
    return site.render(request, "trials.html", query=query, page=page, verdicts=VERDICTS, **_WORDS)


@routes.get("/trials/models")
async def show_models(request: web.Request) -> web.Response:
    """Show the model of each metric with its errors on A/A tests, or all choices for one metric."""
    site = site_of(request)
    service, metric = (request.query.get(name, "") for name in ("service", "metric"))
    now, whole = site.sources.clock(), bool(service and metric)
    since = EARLIEST_S if whole else now - RECENT_S
    courses = await site.read(read_courses, site.store, since, service, metric)
    tests = await site.read(count_tests, site.store, now)
    shown = courses[:MOST_LINES]
    return site.render(
        request,
        "trial_models.html",
        courses=shown,
        more=len(courses) - len(shown),
        tests=tests,
        services=sorted({*tests, *await site.read(read_services, site.store)}),
        service=service,
        metric=metric,
        detailed=shown[:MOST_DRAWN] if whole else (),
        about_model=about_model,
    )


@routes.get("/trials/models/course.json")
async def show_course(request: web.Request) -> web.Response:
    """Return models' errors on the A/A tests of one metric as a figure."""
    site = site_of(request)
    service, metric = (_needed(request, name) for name in ("service", "metric"))
    number = _number(request, "number", 0)

    def draw() -> str | None:
        courses = read_courses(site.store, EARLIEST_S, service, metric)
        return figure_json(draw_course(courses[number])) if number < len(courses) else None

    return await _figure(site, draw)


@routes.get("/trials/differences.json")
async def show_differences(request: web.Request) -> web.Response:
    """Return the differences of an experiment's trials by one metric as a figure."""
    site = site_of(request)
    service, name, metric = (_needed(request, name) for name in ("service", "experiment", "metric"))

    def draw() -> str | None:
        experiment = read_experiment(site.store, service, name)
        if experiment is None or experiment.event is None or experiment.standing is None:
            return None
        judged = [row for row in experiment.event["data"]["metrics"] if row["metric"] == metric]
        if not judged:
            return None
        figure = draw_differences(gather_differences(site.store, experiment.standing, metric), judged[0])
        return None if figure is None else figure_json(figure)

    return await _figure(site, draw)


@routes.get("/trials/{service}/{experiment:.+}")
async def show_one(request: web.Request) -> web.Response:
    """Show one experiment: the verdict on each metric, and its basis."""
    site = site_of(request)
    service, name = request.match_info["service"], request.match_info["experiment"]
    revision = _number(request, "revision", None)
    experiment = await site.read(read_experiment, site.store, service, name, revision)
    if experiment is None:
        raise web.HTTPNotFound(reason="no such experiment, or no such revision of its verdict")
    return site.render(
        request,
        "trial.html",
        page=experiment,
        **_shown(experiment, request.query.get("metric", "")),
        **_WORDS,
    )


def _shown(page: ExperimentPage, metric: str) -> dict[str, Any]:
    """Return the variables of an experiment's page, with details of one metric or of the first few."""
    data = page.event["data"] if page.event else None
    metrics = data["metrics"] if data else []
    worked = (
        [metric_row for metric_row in metrics if metric_row["metric"] == metric]
        if metric
        else metrics[:MOST_DRAWN]
    )
    return {
        "data": data,
        "metrics": metrics,
        "worked": worked,
        "time": from_iso(page.event["time"])
        if page.event
        else page.standing.last_time
        if page.standing
        else 0.0,
        "verdict": data["decision"] if data else "running",
        "drawn": page.is_latest and page.standing is not None,
        "why_model": why_model,
        "about_model": about_model,
        "discarded": discarded,
    }


async def _figure(site: Site, draw: Any) -> web.Response:
    text = await site.draw(draw)
    if text is None:
        raise web.HTTPNotFound(reason="the store has nothing to draw of it")
    return web.Response(text=text, content_type="application/json")


def _needed(request: web.Request, name: str) -> str:
    text = request.query.get(name, "")
    if not text:
        raise ConfigError(f"{name}: missing")
    return text


def _number(request: web.Request, name: str, default: int | None) -> Any:
    text = request.query.get(name, "")
    if not text:
        return default
    if not is_number(text):
        raise ConfigError(f"{name}: should be a number, not {text[:40]!r}")
    return int(text)
