"""OpenID provider on this machine that accepts everybody, and returns false claims where a test wants it."""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote_plus, urlencode

import jwt
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET = "smidgen", "a secret of the provider's"

Claims = dict[str, Any]
Signer = Callable[[Claims], str]


class LocalProvider:
    """Provider that identifies people by ``claims``; ``sign`` makes the ID token of the claims."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.claims: Claims = {"sub": "4711", "email": "ada@example.org", "groups": ["perf"]}
        self.changed: Claims = {}  # claims of a token instead of the true ones
        self.sign: Signer = lambda claims: jwt.encode(claims, self.key, "RS256", {"kid": "one"})
        self._codes: dict[str, dict[str, str]] = {}
        app = web.Application()
        app.router.add_get("/.well-known/openid-configuration", self._describe)
        app.router.add_get("/authorize", self._authorize)
        app.router.add_post("/token", self._exchange)
        app.router.add_get("/keys", self._keys)
        self.server = TestServer(app)

    @property
    def issuer(self) -> str:
        """The provider's address, which is its name."""
        return str(self.server.make_url("/")).rstrip("/")

    async def _describe(self, request: web.Request) -> web.Response:
        paths = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}
        addresses = {name: self.issuer + path for name, path in paths.items()}
        return web.json_response({"issuer": self.issuer, **addresses})

    async def _authorize(self, request: web.Request) -> web.Response:
        query = request.query
        assert (query["response_type"], query["code_challenge_method"]) == ("code", "S256")
        code = secrets.token_hex(8)
        self._codes[code] = dict(query)
        raise web.HTTPFound(f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}")

    async def _exchange(self, request: web.Request) -> web.Response:
        form = await request.post()
        login = self._codes.pop(str(form["code"]), None)
        pair = f"{CLIENT}:{quote_plus(SECRET)}"
        digest = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
        if (
            login is None
            or base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != login["code_challenge"]
            or request.headers.get("Authorization") != f"Basic {base64.b64encode(pair.encode()).decode()}"
            or form["redirect_uri"] != login["redirect_uri"]
        ):
            return web.json_response({"error": "invalid_grant"}, status=400)
        now = int(time.time())
        own = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 60, "nonce": login["nonce"]}
        claims = {**self.claims, **own, **self.changed}
        return web.json_response({"access_token": "unused", "id_token": self.sign(claims)})

    async def _keys(self, request: web.Request) -> web.Response:
        algorithm = jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256)
        public = algorithm.to_jwk(self.key.public_key(), as_dict=True)
        return web.json_response({"keys": [{**public, "kid": "one", "use": "sig", "alg": "RS256"}]})
