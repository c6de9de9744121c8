"""Logging in at a provider, and every way in which somebody may try it who should not come in."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, tzinfo
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from aiohttp import CookieJar
from aiohttp.test_utils import TestClient, TestServer, unused_port
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric import rsa

from pipeline.cli import smidgen
from pipeline.model.errors import ConfigError
from pipeline.storage.arrays import ArrayStore
from pipeline.views.dashboard import Login, Oidc, Provider, Roles, Sessions, Sources, create_app
from pipeline.views.dashboard.oidc import groups_of, name_of
from pipeline.views.dashboard.session import own_path
from tests.support.oidc_provider import CLIENT, SECRET, LocalProvider
from tests.support.open_faults import open_fault

Client = TestClient[Any, Any]
PAGE = {"Accept": "text/html"}
TRIAGE = Roles(triage_groups=frozenset({"perf"}))


@asynccontextmanager
async def run(roles: Roles = TRIAGE) -> AsyncIterator[tuple[Client, LocalProvider]]:
    provider = LocalProvider()
    await provider.server.start_server()
    port = unused_port()
    known = Provider(provider.issuer, CLIENT, f"http://127.0.0.1:{port}", SECRET)
    oidc = Oidc(known, Sessions(roles, SECRET))
    app = create_app(Sources(ArrayStore()), Login(token="t", sessions=True), oidc=oidc)
    jar = CookieJar(unsafe=True)  # of an address, not a name
    try:
        async with TestClient(TestServer(app, port=port), cookie_jar=jar) as client:
            yield client, provider
    finally:
        await provider.server.close()


async def callback(client: Client, back: str = "/services") -> str:
    """Begin a login, and return the address to which the provider sends the browser."""
    answer = await client.get("/login", params={"next": back}, allow_redirects=False)
    asked = await client.session.get(answer.headers["Location"], allow_redirects=False)
    parts = urlsplit(asked.headers["Location"])
    return f"{parts.path}?{parts.query}"


async def status(client: Client, path: str) -> int:
    return (await client.get(path, headers=PAGE, allow_redirects=False)).status


async def test_a_person_logs_in_comes_where_they_wanted_and_logs_out() -> None:
    async with run() as (client, provider):
        page = await client.get("/services?sort=name", headers=PAGE)
        assert (page.status, page.url.path_qs) == (200, "/services?sort=name")
        text = await page.text()
        assert "ada@example.org" in text
        assert "read only" not in text
        cookie = client.session.cookie_jar.filter_cookies(page.url)["smidgen-session"]
        token = text.split('data-form-token="')[1].split('"')[0]
        assert (await client.post("/logout")).status == 403
        out = await client.post("/logout", data={"form_token": token}, headers=PAGE)
        assert (out.status, out.url.path) == (200, "/logged-out")
        kept = {"Cookie": f"smidgen-session={cookie.value}"}  # by somebody who copied it
        assert (await client.get("/api/v1/services", headers=kept)).status == 401


async def test_a_session_lasts_an_hour_and_the_provider_begins_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No other dashboard knows that somebody has logged out, nor this one that they have left a group."""
    async with run() as (client, provider):
        assert "read only" not in await (await client.get("/services", headers=PAGE)).text()
        provider.claims["groups"] = []
        assert "read only" not in await (await client.get("/services", headers=PAGE)).text()
        monkeypatch.setattr(jwt.api_jwt, "datetime", _Later)
        assert (await client.get("/api/v1/services")).status == 401
        monkeypatch.undo()
        client.session.cookie_jar.clear(lambda cookie: cookie.key == "smidgen-session")
        page = await client.get("/services", headers=PAGE)
        assert (page.status, "read only" in await page.text()) == (200, True)


class _Later(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> _Later:
        return cls.fromtimestamp(time.time() + 3601, tz)


async def test_a_session_is_in_a_cookie_that_no_script_and_no_other_site_has() -> None:
    async with run() as (client, provider):
        answer = await client.get(await callback(client), allow_redirects=False)
        cookies = answer.headers.getall("Set-Cookie")
        (session,) = [one for one in cookies if one.startswith("smidgen-session=")]
        assert "HttpOnly" in session
        assert "SameSite=Lax" in session
        assert SECRET not in session
        changed = session.split(";")[0][:-4] + "AAAA"
        client.session.cookie_jar.clear()
        assert (await client.get("/api/v1/services", headers={"Cookie": changed})).status == 401
        assert (await client.get("/api/v1/services")).status == 401
        assert (await client.get("/api/v1/services", headers={"Authorization": "Bearer t"})).status == 200


@pytest.mark.parametrize(
    ("groups", "roles", "reads", "answers"),
    [
        (["perf"], TRIAGE, True, True),
        (["others"], TRIAGE, True, False),
        (["others"], Roles(read_groups=frozenset({"staff"})), False, False),
        (["staff"], Roles(read_groups=frozenset({"staff"})), True, False),
        ([], Roles(triage=frozenset({"ada@example.org"})), True, True),
    ],
)
async def test_groups_say_who_reads_and_who_answers(
    groups: list[str], roles: Roles, reads: bool, answers: bool
) -> None:
    async with run(roles) as (client, provider):
        provider.claims["groups"] = groups
        page = await client.get("/regressions", headers=PAGE)
        assert page.status == (200 if reads else 403)
        assert ("read only" in await page.text()) is not answers


async def test_a_wrong_state_and_an_answer_to_another_browser_are_refused() -> None:
    async with run() as (client, provider):
        path = await callback(client)
        state = parse_qs(urlsplit(path).query)["state"][0]
        assert await status(client, path.replace(state, "guessed")) == 403
        client.session.cookie_jar.clear()
        assert await status(client, path) == 403
        assert await status(client, "/login/callback?error=access_denied") == 403


async def test_an_answer_that_was_used_is_refused_though_its_cookie_is_there() -> None:
    async with run() as (client, provider):
        path = await callback(client)
        cookies = client.session.cookie_jar.filter_cookies(client.make_url("/"))
        again = {"Cookie": f"smidgen-login={cookies['smidgen-login'].value}", **PAGE}
        assert await status(client, path) == 303
        client.session.cookie_jar.clear()
        assert (await client.get(path, headers=again, allow_redirects=False)).status == 403
        other = await callback(client)  # the code of one login in the answer to another
        code, used = (parse_qs(urlsplit(one).query)["code"][0] for one in (other, path))
        assert await status(client, other.replace(code, used)) == 502


HOUR_AGO = int(time.time()) - 3600


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"nonce": "of another login"}, id="nonce"),
        pytest.param({"aud": "another client"}, id="audience"),
        pytest.param({"aud": [CLIENT, "another client"]}, id="audiences"),
        pytest.param({"azp": "another client"}, id="authorized party"),
        pytest.param({"iss": "https://evil.invalid"}, id="issuer"),
        pytest.param({"iat": HOUR_AGO - 60, "exp": HOUR_AGO}, id="expired"),
        pytest.param({"exp": None}, id="without an end"),
    ],
)
async def test_a_token_that_says_something_else_is_not_believed(changed: dict[str, Any]) -> None:
    async with run() as (client, provider):
        provider.changed = changed
        assert await status(client, await callback(client)) == 403
        assert (await client.get("/api/v1/services")).status == 401


def _unsigned(claims: dict[str, Any]) -> str:
    return jwt.encode(claims, "", "none")


def _by_the_client(claims: dict[str, Any]) -> str:
    return jwt.encode(claims, SECRET * 2, "HS256", {"kid": "one"})


def _by_another_key(claims: dict[str, Any]) -> str:
    return jwt.encode(claims, rsa.generate_private_key(65537, 2048), "RS256", {"kid": "one"})


def _by_an_unknown_key(claims: dict[str, Any]) -> str:
    return jwt.encode(claims, rsa.generate_private_key(65537, 2048), "RS256", {"kid": "two"})


@pytest.mark.parametrize("sign", [_unsigned, _by_the_client, _by_another_key, _by_an_unknown_key])
async def test_a_token_that_the_provider_did_not_sign_is_not_believed(
    sign: Callable[[dict[str, Any]], str],
) -> None:
    async with run() as (client, provider):
        provider.sign = sign
        assert await status(client, await callback(client)) == 403


@pytest.mark.parametrize(
    "text",
    [
        "/services?q=" + "x" * 3000,
        "https://evil.invalid/",
        "//evil.invalid",
        "/\\evil.invalid",
        "/\t/evil.invalid",
        "javascript:x",
        "",
    ],
)
async def test_a_login_leads_nowhere_else(text: str) -> None:
    assert own_path(text) == "/regressions"
    assert own_path("/services?a=b") == "/services?a=b"
    async with run() as (client, provider):
        answer = await client.get(await callback(client, text), allow_redirects=False)
        assert answer.headers["Location"] == "/regressions"


def test_who_somebody_is() -> None:
    assert name_of({"sub": "1", "email": "a@b.org"}) == "a@b.org"
    assert name_of({"sub": "1", "email": "a@b.org", "email_verified": False}) == "1"
    assert groups_of({"realm_access": {"roles": ["perf"]}}, "realm_access.roles") == {"perf"}
    assert groups_of({"groups": 7}, "groups") == frozenset()
    with pytest.raises(ConfigError, match="--oidc-issuer: should be an https address"):
        Provider("http://idp.example.org", CLIENT, "https://smidgen.example.org")


@open_fault("44.12", "an address without the claim email_verified is believed, as Entra ID sends it")
def test_an_address_that_nobody_vouches_for_is_no_name() -> None:
    assert name_of({"sub": "1", "email": "a@b.org"}) == "1"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--triage-group", "perf"], "--triage-group needs --oidc-issuer"),
        (["--oidc-issuer", "https://idp.invalid", "--oidc-client", "x"], "--public-url: should be an https"),
        (
            ["--oidc-issuer", "https://idp.invalid", "--public-url", "https://a.b"],
            "--oidc-client: missing",
        ),
    ],
)
def test_what_is_missing_is_said(given: list[str], said: str) -> None:
    result = CliRunner().invoke(smidgen, ["dashboard", *given])
    assert said in result.output + str(result.exception)
