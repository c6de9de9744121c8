"""Login by OpenID Connect: authorization code with PKCE, and the provider's claims about a person."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

import jwt
from aiohttp import ClientError, ClientSession, ClientTimeout, web

from pipeline.http.access import is_loopback
from pipeline.model.errors import ConfigError
from pipeline.views.dashboard.session import LOGIN_S, Sessions

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Accepted signatures: of a key pair alone, so that nobody but the provider can make one."""

LEEWAY_S = 60.0
"""Largest difference of the provider's clock."""

KEEP_S = 3600.0
"""Time for which the provider's metadata are kept; an unknown key makes the keys be read anew."""

KEYS_S = 30.0
"""Shortest interval between reads of the keys: anybody can name a key that does not exist."""

_WAIT = ClientTimeout(total=10.0)
_LARGEST = 1024 * 1024
_REQUIRED = ("authorization_endpoint", "token_endpoint", "jwks_uri")


@dataclass(frozen=True, slots=True)
class Provider:
    """The login provider, and this dashboard's registration there."""

    issuer: str
    client: str
    public_url: str  # public address of this dashboard; its /login/callback is registered
    secret: str = field(default="", repr=False)  # empty: a public client, protected by PKCE alone
    scopes: str = "openid profile email"
    groups_claim: str = "groups"

    def __post_init__(self) -> None:
        for name, url in (("--oidc-issuer", self.issuer), ("--public-url", self.public_url)):
            _check_url(name, url)
        if not self.client:
            raise ConfigError("--oidc-client: missing: the id by which the provider knows this dashboard")

    @property
    def redirect(self) -> str:
        """Address to which the provider sends people back."""
        return self.public_url.rstrip("/") + "/login/callback"


class Oidc:
    """Sends people to a provider, and reads its claims about them."""

    def __init__(self, provider: Provider, sessions: Sessions) -> None:
        self.provider = provider
        self.sessions = sessions
        self._metadata: tuple[float, Mapping[str, Any]] = (float("-inf"), {})
        self._keys: tuple[float, jwt.PyJWKSet | None] = (float("-inf"), None)
        self._asking = asyncio.Lock()

    async def begin(self, back: str) -> tuple[str, str]:
        """Return the login address, and the cookie for this browser's return; ``back`` is a page's path."""
        metadata = await self._discover()
        begun = {name: secrets.token_urlsafe(32) for name in ("state", "nonce", "verifier")}
        digest = hashlib.sha256(begun["verifier"].encode()).digest()
        parameters = {
            **{"response_type": "code", "client_id": self.provider.client, "scope": self.provider.scopes},
            **{"redirect_uri": self.provider.redirect, "state": begun["state"], "nonce": begun["nonce"]},
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        where: str = metadata["authorization_endpoint"]
        joint = "&" if urlsplit(where).query else "?"
        return where + joint + urlencode(parameters), self.sessions.sign("login", LOGIN_S, back=back, **begun)

    async def finish(self, given: Mapping[str, str], cookie: str) -> tuple[str, str]:
        """Return the cookie of a session, and the path of the originally requested page.

        Args:
            given: With what the provider sent the browser back.
            cookie: The one of ``begin``.

        Raises:
            HTTPForbidden: this browser did not begin the login, or the provider rejected the person.
            HTTPBadGateway: the provider's answer cannot be read or verified.
        """
        begun = self.sessions.read("login", cookie)
        if begun is None or not _same(begun["state"], given.get("state", "")):
            raise web.HTTPForbidden(reason="this login was not begun here, or is too old: log in again")
        if given.get("iss", self.provider.issuer) != self.provider.issuer:
            raise web.HTTPForbidden(reason="another provider answered")
        if not given.get("code"):
            raise web.HTTPForbidden(reason="the provider did not let you in")
        if not self.sessions.end(begun):
            raise web.HTTPForbidden(reason="this answer of the provider was used already: log in again")
        token = await self._exchange(given["code"], begun["verifier"])
        claims = await self._believe(token)
        if not _same(begun["nonce"], str(claims.get("nonce", ""))):
            raise web.HTTPForbidden(reason="the ID token is of another login")
        session = self.sessions.begin(name_of(claims), groups_of(claims, self.provider.groups_claim))
        return session, begun["back"]

    async def _exchange(self, code: str, verifier: str) -> str:
        provider = self.provider
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": provider.redirect}
        form |= {"code_verifier": verifier, "client_id": provider.client}
        headers = {"Authorization": _basic(provider.client, provider.secret)} if provider.secret else {}
        where = (await self._discover())["token_endpoint"]
        answer = await _ask("POST", where, data=form, headers=headers)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise web.HTTPBadGateway(reason="the provider gave no ID token")
        return token

    async def _believe(self, token: str) -> Mapping[str, Any]:
        provider = self.provider
        try:
            key = await self._key(jwt.get_unverified_header(token).get("kid"))
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                audience=provider.client,
                issuer=provider.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise web.HTTPForbidden(reason=f"the ID token is not believed: {_line(error)}") from None
        audiences = claims["aud"] if isinstance(claims["aud"], list) else []
        if claims.get("azp", provider.client) != provider.client or (
            len(audiences) > 1 and "azp" not in claims
        ):
            raise web.HTTPForbidden(reason="the ID token is not believed: given to another client")
        return claims

    async def _key(self, name: str | None) -> jwt.PyJWK:
        for _ in range(2):
            read_at, keys_by_id = self._keys
            if keys_by_id is not None:
                fitting = [key for key in keys_by_id.keys if name in (None, key.key_id)]
                if len(fitting) == 1:
                    return fitting[0]
            async with self._asking:
                if self._keys[0] != read_at or time.monotonic() - read_at < KEYS_S:
                    continue
                where = await self._discover_unlocked()
                keys = jwt.PyJWKSet.from_dict(dict(await _ask("GET", where["jwks_uri"])))
                self._keys = (time.monotonic(), keys)
        raise jwt.InvalidKeyError("signed by a key that the provider does not publish")

    async def _discover(self) -> Mapping[str, Any]:
        async with self._asking:
            return await self._discover_unlocked()

    async def _discover_unlocked(self) -> Mapping[str, Any]:
        read_at, metadata = self._metadata
        if time.monotonic() - read_at < KEEP_S:
            return metadata
        issuer = self.provider.issuer
        metadata = await _ask("GET", issuer.rstrip("/") + "/.well-known/openid-configuration")
        if metadata.get("issuer") != issuer:
            raise web.HTTPBadGateway(reason="the provider calls itself by another name than --oidc-issuer")
        for name in _REQUIRED:
            try:
                _check_url(name, str(metadata.get(name, "")))
            except ConfigError as error:
                raise web.HTTPBadGateway(reason=f"the provider's {error}") from None
        self._metadata = (time.monotonic(), metadata)
        return metadata


def name_of(claims: Mapping[str, Any]) -> str:
    """Return the name of a person: the address if the provider has verified it, else the subject."""
    address = claims.get("email")
    vouched = isinstance(address, str) and address and claims.get("email_verified", True) is True
    return str(address if vouched else claims["sub"])


def groups_of(claims: Mapping[str, Any], claim: str) -> frozenset[str]:
    """Return the groups of a person; a dot in the claim is a path into it, as in ``realm_access.roles``."""
    groups: Any = claims.get(claim)
    if groups is None:
        groups = claims
        for part in claim.split("."):
            groups = groups.get(part) if isinstance(groups, Mapping) else None
    if isinstance(groups, str):
        groups = [groups]
    return frozenset(map(str, groups)) if isinstance(groups, list) else frozenset()


async def _ask(method: str, url: str, **given: Any) -> Mapping[str, Any]:
    try:
        async with (
            ClientSession(timeout=_WAIT) as client,
            client.request(method, url, allow_redirects=False, **given) as answer,
        ):
            if answer.status != 200:
                raise web.HTTPBadGateway(reason=f"the provider answered {answer.status}: log in again")
            if (answer.content_length or 0) > _LARGEST:
                raise web.HTTPBadGateway(reason="the provider's answer is too large")
            body = await answer.json(content_type=None)
    except (ClientError, TimeoutError, ValueError) as error:
        raise web.HTTPBadGateway(reason=f"the provider cannot be asked: {_line(error)}") from None
    if not isinstance(body, dict):
        raise web.HTTPBadGateway(reason="the provider's answer is no JSON object")
    return body


def _check_url(name: str, url: str) -> None:
    parts = urlsplit(url)
    encrypted = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    if not encrypted or not parts.hostname:
        raise ConfigError(f"{name}: should be an https address, not {url[:80]!r}")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _basic(client: str, secret: str) -> str:
    # Both are form-encoded first (RFC 6749, section 2.3.1).
    pair = f"{quote_plus(client)}:{quote_plus(secret)}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def _same(text: str, expected: str) -> bool:
    return secrets.compare_digest(text.encode(), expected.encode("utf-8", "replace"))
