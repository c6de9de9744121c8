"""Who may do what over HTTP, and what programs are answered, over what the stages found in one service."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from html import unescape
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from click.testing import CliRunner

from pipeline.analysis.feedback import Reported
from pipeline.cli import smidgen
from pipeline.messages.inputs import silence_to_row
from pipeline.model import Verdict, VerdictKind
from pipeline.model.clock import to_iso
from pipeline.model.errors import ConfigError
from pipeline.stages.gather.reported import Answered
from pipeline.storage.arrays import ArrayStore
from pipeline.views.dashboard import Login
from pipeline.views.dashboard.openapi import DOCUMENT
from pipeline.views.report.ids import NOT_REPORTED
from tests.unit.views.dashboard.conftest import PROXIED, TOKEN, Client, Serve, listed


async def form_token(client: Client, headers: Mapping[str, str] | None = None) -> str:
    page = await (await client.get("/regressions", headers=headers)).text()
    found = re.search(r'data-form-token="(\w+)"', page)
    assert found
    return found[1]


@pytest.mark.slow
async def test_nobody_gets_in_whom_no_proxy_and_no_token_names(serve: Serve) -> None:
    async with serve(PROXIED) as client:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            for path in ("/regressions", "/api/v1/events", "/explorer/flames"):
                assert (await client.get(path, headers=headers)).status == 401
        assert (await client.get("/live")).status == 200
        assert (await client.get("/ready")).status == 200


async def test_who_only_reads_has_no_buttons_and_is_refused(serve: Serve, said: list[Any]) -> None:
    async with serve(PROXIED) as client:
        reader = {"X-User": "bob"}
        page = await (await client.get("/regressions?state=all", headers=reader)).text()
        assert "bob, read only" in page
        assert 'name="verdict"' not in page
        one = (await listed(client))[0]["id"]
        form = {"id": one, "verdict": "false", "form_token": await form_token(client, reader)}
        assert (await client.post("/regressions", data=form, headers=reader)).status == 403
    assert said == []


async def test_a_form_of_another_site_is_refused_and_one_of_the_page_is_said(
    serve: Serve, said: list[Any]
) -> None:
    async with serve(PROXIED) as client:
        ada, bob = {"X-User": "ada"}, {"X-User": "bob"}
        one, two = [each["id"] for each in (await listed(client))[:2]]
        form = [("id", one), ("id", two), ("verdict", "expected"), ("comment", "planned")]
        for token in ("", "0" * 64, await form_token(client, bob)):
            refused = await client.post("/regressions", data=[*form, ("form_token", token)], headers=ada)
            assert refused.status == 403
        own = [*form, ("form_token", await form_token(client, ada)), ("back", "https://evil.invalid/")]
        answer = await client.post("/regressions", data=own, headers=ada, allow_redirects=False)
        assert (answer.status, answer.headers["Location"]) == (303, "/regressions")
        assert {each["id"] for each in await listed(client, state="expected")} == {one, two}
    assert [(one.verdict, one.author, one.comment) for one in said] == [("expected", "ada", "planned")] * 2


async def test_every_answer_keeps_other_sites_out(serve: Serve) -> None:
    async with serve(Login()) as client:
        for path in ("/regressions", "/nothing", "/api/v1/services", "/static/app.js", "/live"):
            headers = (await client.get(path)).headers
            assert "script-src 'self';" in headers["Content-Security-Policy"]
            assert headers["X-Content-Type-Options"] == "nosniff"
        assert (await client.get("/regressions", headers={"Host": "evil.invalid"})).status == 421
        for path in ("/static/..%2Fapp.py", "/static/app.py", "/static/%2Fetc%2Fpasswd"):
            assert (await client.get(path)).status == 404


async def test_programs_are_answered_as_the_document_says(
    serve: Serve, looked_into: tuple[ArrayStore, float], said: list[Any]
) -> None:
    async with serve(PROXIED) as client:
        one = (await listed(client))[0]
        end = to_iso(looked_into[1])
        series = {"service": "search", "name": one["metric"], "kind": one["metric_kind"], "end": end}
        for path, given in (
            ("/api/v1/events", {"limit": "3"}),
            ("/api/v1/regressions", {"state": "all", "per": "2"}),
            ("/api/v1/regressions/{id}", {}),
            ("/api/v1/services", {}),
            ("/api/v1/series", series),
        ):
            answer = await client.get(path.replace("{id}", one["id"]), params=given, headers=TOKEN)
            assert answer.status == 200, path
            schema = DOCUMENT["paths"][path]["get"]["responses"]["200"]["content"]["application/json"][
                "schema"
            ]
            body = await answer.json()
            jsonschema.validate(body, {**schema, "components": DOCUMENT["components"]})
            assert any(body.values())
        path = f"/api/v1/regressions/{one['id']}/verdict"
        answer = await client.post(path, json={"verdict": "fixed", "author": "ci"}, headers=TOKEN)
        assert (answer.status, (await answer.json())["state"]) == (200, "fixed")
        answer = await client.post(path, json={"verdict": "cause", "subject": "8f2c11d0"}, headers=TOKEN)
        assert ((await answer.json())["state"], (await answer.json())["cause"]) == ("fixed", "8f2c11d0")
        page = await (await client.get(f"/regressions/{one['id']}", headers=TOKEN)).text()
        assert "Confirmed: <code>8f2c11d0</code>" in page
        for wrong in ({"verdict": "odd"}, {"verdict": 1}, ["fixed"]):
            answer = await client.post(path, json=wrong, headers=TOKEN)
            assert answer.status == 400
            assert (await answer.json())["error"]
        assert (await client.get("/api/v1/regressions/none", headers=TOKEN)).status == 404
        assert (await client.get("/api/v1/series", headers=TOKEN)).status == 400
        for limit in ("²", "٣x", "9" * 5000, "0"):
            answer = await client.get("/api/v1/events", params={"limit": limit}, headers=TOKEN)
            assert answer.status == 400
    assert [(one.verdict, one.author) for one in said] == [("fixed", "ci"), ("cause", "api")]


async def test_a_person_speaks_for_nobody_else(serve: Serve, said: list[Any]) -> None:
    async with serve(PROXIED) as client:
        (one, *_) = await listed(client)
        path, ada = f"/api/v1/regressions/{one['id']}/verdict", {"X-User": "ada"}
        headers = {**ada, "X-Form-Token": await form_token(client, ada)}
        answer = await client.post(path, json={"verdict": "false", "author": "grace"}, headers=headers)
        assert (answer.status, "author" in (await answer.json())["error"]) == (403, True)
        for body in ({"verdict": "false", "author": "ada"}, {"verdict": "true"}):
            assert (await client.post(path, json=body, headers=headers)).status == 200
    assert [(one.verdict, one.author) for one in said] == [("false", "ada"), ("true", "ada")]


async def test_a_wrong_filter_is_a_page_that_says_so(serve: Serve) -> None:
    async with serve(Login()) as client:
        answer = await client.get("/regressions?sort=colour")
        assert answer.status == 400
        assert "Sort: should be one of detected" in await answer.text()


def test_without_a_login_it_listens_on_this_machine_alone() -> None:
    result = CliRunner().invoke(smidgen, ["dashboard", "--host", "0.0.0.0"])
    assert isinstance(result.exception, ConfigError)
    assert "--user-header" in str(result.exception)
    result = CliRunner().invoke(smidgen, ["dashboard", "--user-header", "X-User"])
    assert result.exit_code == 2
    assert "--trusted-proxy" in result.output


async def test_a_program_mutes_and_expects_and_takes_it_back(
    serve: Serve, looked_into: tuple[ArrayStore, float], said: list[Any]
) -> None:
    mute = {"kind": "muted", "service": "search", "end": "2h", "reason": "load test"}
    cost = {"kind": "expected", "service": "search", "subroutine": "lib.*", "cost": 0.001, "owner": "ada"}
    async with serve(PROXIED) as client:
        path = "/api/v1/silences"
        assert (await client.post(path, json=mute, headers={"X-User": "bob"})).status == 403
        assert (await client.post(path, json=mute, headers={"X-User": "ada"})).status == 403
        for given in (mute, cost):
            answer = await client.post(path, json=given, headers=TOKEN)
            assert answer.status == 200
            one = await answer.json()
            assert given.items() - {("end", "2h")} <= one.items()
        store = looked_into[0]
        rows = [silence_to_row(one) for one in said]
        store.insert("silences", {name: [row[name] for row in rows] for name in rows[0]})
        listed = (await (await client.get(path, headers=TOKEN)).json())["silences"]
        assert {one["id"] for one in listed} == {one.id for one in said}
        assert (await client.delete(f"{path}/{listed[0]['id']}", headers=TOKEN)).status == 200
        assert (await client.delete(f"{path}/none", headers=TOKEN)).status == 404
        changed: list[dict[str, Any]] = [{"end": ""}, {"end": "1970-01-02"}, {"cost": 2}, {"x": ""}]
        for wrong in (*({**mute, **each} for each in changed), []):
            assert (await client.post(path, json=wrong, headers=TOKEN)).status == 400, wrong
    assert [(one.kind, one.owner, one.removed is None) for one in said[:2]] == [
        ("muted", "api", True),
        ("expected", "ada", True),
    ]
    assert said[2].removed is not None


async def test_a_badge_says_what_is_open_and_is_kept_a_while(serve: Serve) -> None:
    async def closed(client: Client) -> None:
        assert (await client.get("/badges/search.svg")).status == 401

    async with serve(replace(PROXIED, open_badges=True)) as client:
        answer = await client.get("/badges/search.svg")
        assert answer.status == 200
        assert answer.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
        assert answer.headers["Cache-Control"] == "public, max-age=300"
        picture = ElementTree.fromstring(await answer.text())
        text = picture.attrib["aria-label"]
        assert re.fullmatch(r"smidgen: \d+ open, largest \+[\d.]+ pt", text)
        assert picture[0].text == text
        again = await client.get("/badges/search.svg", headers={"If-None-Match": answer.headers["ETag"]})
        assert again.status == 304
        endpoint = await (await client.get("/badges/search.json")).json()
        assert f"{endpoint['label']}: {endpoint['message']}" == text
        unknown = await (await client.get("/badges/%3Cscript%3E.svg")).text()
        assert "unknown service" in unknown
        assert (await client.get("/regressions")).status == 401


async def test_two_settings_stand_side_by_side(serve: Serve) -> None:
    async with serve(PROXIED) as client:
        page = await compared(client, "/settings?workload=weekly&threshold=0.0001&other_threshold=0.9")
        reported = await listed(client)
        assert all(f'href="/regressions/{one["id"]}"' in page for one in reported)
        assert page.count('" class="differs">') == len(reported) > 0
        assert f"right reports fewer</dt><dd>{len(reported)} <small>0 right, 0 wrong</small>" in page
        wrong = await client.get("/settings?workload=weekly&chance=none", headers=TOKEN)
        assert (wrong.status, "Chance: should be a number above 0" in await wrong.text()) == (400, True)


async def test_answers_show_precision_and_propose_thresholds(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three wrong events are smaller than the smallest of twenty right ones, and one more than the next."""
    answered = [_answered(number, "true", 0.02 if number else 0.004) for number in range(20)]
    answered += [_answered(number, "false", 0.01 if number == 20 else 0.001) for number in range(20, 24)]
    monkeypatch.setattr("pipeline.views.dashboard.pages.settings.gather_answered", lambda *_: answered)
    async with serve(PROXIED) as client:
        page = await compared(client, "/settings?workload=weekly")
        assert '<td class="num" data-label="right">20 of 24</td>' in page
        assert "service <strong>search</strong>" in page
        proposed = "/settings?workload=weekly&amp;service=search&amp;other_threshold="
        texts = (
            f'"{proposed}0.0036">0.0036 instead of 0.0005</a> keeps all 20 right ones and drops 3 of 4 ',
            f'"{proposed}0.018">0.018 instead of 0.0005</a> keeps 19 of 20 right ones and drops 4 of 4 ',
        )
        assert all(text in page for text in texts)
        assert page.count("instead of") == len(texts)  # where 90 % come to the same they are not there twice
        answer = await client.get(f"{unescape(proposed)}0.018", headers=TOKEN)
        assert 'name="other_threshold" min="0" step="any" value="0.018"' in await answer.text()


async def compared(client: Client, address: str) -> str:
    """Return the part of the page Settings that its script fetches."""
    page = await (await client.get(address, headers=TOKEN)).text()
    (part,) = re.findall(r'data-part="(/settings/compared\?[^"]*)"', page)
    answer = await client.get(unescape(part), headers=TOKEN)
    assert answer.status == 200
    return await answer.text()


def _answered(number: int, verdict: VerdictKind, delta: float) -> Answered:
    id_ = f"e{number}"
    reported = Reported(id_, "search", "weekly", "subroutine", "f", 0.0, 10.0, 0.1, 0.1 + delta)
    return Answered(reported, Verdict(id_, "search", verdict, 1.0))


async def test_top_functions_are_shown_to_programs_with_a_token(serve: Serve) -> None:
    async with serve(PROXIED) as client:
        assert (await client.get("/metrics")).status == 401
        page = await client.get("/metrics", headers=TOKEN)
        text = await page.text()
        assert page.content_type == "text/plain"
        shown = [line for line in text.splitlines() if not line.startswith("#")]
        assert len(shown) == 20
        assert all(line.startswith("smidgen_top_function_gcpu{function=") for line in shown)
        assert all(',release="",service="search"} 0.' in line for line in shown)


async def test_the_first_digits_of_an_id_lead_to_its_page(serve: Serve) -> None:
    async with serve(PROXIED) as client:
        key = (await listed(client))[0]["id"]
        answer = await client.get(f"/regressions/{key[:9].upper()}", headers=TOKEN, allow_redirects=False)
        assert (answer.status, answer.headers["Location"]) == (302, f"/regressions/{key}")
        assert (await client.get(f"/api/v1/regressions/{key[:9]}", headers=TOKEN)).status == 200


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/regressions/0123456789", f"no candidate '0123456789': {NOT_REPORTED}"),
        ("/regressions/nothing", "'nothing' is no id: at least six digits of 0-9 and a-f"),
        ("/services/nothing", "no service 'nothing' has sent anything; there are: "),
    ],
)
async def test_what_is_not_there_is_named_with_what_there_is(serve: Serve, path: str, reason: str) -> None:
    async with serve(PROXIED) as client:
        page = await client.get(path, headers={**TOKEN, "Accept": "text/html"})
        assert page.status == 404
        assert reason.lower() in unescape(await page.text()).lower()
        data = await client.get(path, headers={**TOKEN, "Accept": "application/json"})
        assert (await data.json())["error"].startswith(reason)
