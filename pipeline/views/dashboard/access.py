"""Authentication and rights: by a proxy's header, a bearer token, a session, or on this machine."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pipeline.http.access import is_authorised, is_loopback
from pipeline.model.errors import ConfigError

_PLOTLY_STYLES = (
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='",  # the empty element that it adds rules to
    "'sha256-ji27qzEtxXZW+7dun6UwjHXJ18e6WAin1VvNtkzIE/o='",  # of its maps
)
"""Style elements that plotly makes; it sets style attributes, too. Neither can load or run anything."""

_POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    f"style-src-elem 'self' {' '.join(_PLOTLY_STYLES)}",
    "style-src-attr 'unsafe-inline'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
)

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "; ".join(_POLICY),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of every answer: nothing from outside is loaded, and no script stands in a page."""

EVERYBODY = "*"

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Person:
    """A user of the dashboard. Without ``may_answer`` a person only reads."""

    name: str
    may_answer: bool
    may_read: bool = True  # False: in no group of the provider that may read
    by_token: bool = False  # of a program: no browser sends it by itself, so forms need no token


@dataclass(frozen=True, slots=True)
class Login:
    """Authentication of people and programs.

    Without ``header`` everybody who reaches the server may answer, so it has to listen on this machine alone.
    """

    header: str = ""  # holds the user's name, set by a reverse proxy
    proxies: tuple[Network, ...] = ()  # whose header is believed
    triage: frozenset[str] = frozenset()  # users who may answer; EVERYBODY stands for all
    token: str | None = field(default=None, repr=False)  # bearer token of programs
    sessions: bool = False  # people log in by a provider, see pages/login.py
    open_badges: bool = False  # badges of services are public

    def person(self, peer: str | None, headers: Mapping[str, str]) -> Person | None:
        """Return the person of a request, by the address of the peer and the headers; None if unknown."""
        if header := headers.get("Authorization"):
            is_program = self.token is not None and is_authorised(header, self.token)
            return Person("api", may_answer=True, by_token=True) if is_program else None
        if self.sessions:
            return None
        if not self.header:
            return Person("local", may_answer=True)
        name = _only(headers, self.header).strip()
        if not name or not self._believes(peer):
            return None
        return Person(name, may_answer=bool(self.triage & {name, EVERYBODY}))

    def knows_host(self, host: str) -> bool:
        """Return whether a Host header is a name of this server.

        Without a login a page of another origin whose name resolves to this machine would be let in.
        """
        if self.header or self.sessions:
            return True
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        return is_loopback(name)

    def _believes(self, peer: str | None) -> bool:
        try:
            address = ipaddress.ip_address(peer or "")
        except ValueError:
            return False
        return any(address in network for network in self.proxies)


class Forms:
    """Tokens that stand in the forms of a person's pages, so that no other site can send one.

    Several dashboards with one ``secret`` take one another's forms; without one only this process does.
    """

    def __init__(self, secret: str = "") -> None:
        key = secret.encode() if secret else secrets.token_bytes(32)
        # Slow, because pages hold derived values: a short secret should not be found by trying.
        self._key = hashlib.scrypt(key, salt=b"smidgen dashboard: forms", n=2**14, r=8, p=1)

    def token(self, person: Person) -> str:
        """Return the token of a person."""
        return hmac.new(self._key, person.name.encode(), hashlib.sha256).hexdigest()

    def accepts(self, person: Person, token: str) -> bool:
        """Return whether a form came from one of the person's own pages."""
        return hmac.compare_digest(self.token(person).encode(), token.encode("utf-8", "replace"))


def _only(headers: Mapping[str, str], name: str) -> str:
    """Return a header that occurs once; of several it is unknown which one the proxy has set."""
    values = [value for key, value in headers.items() if key.lower() == name.lower()]
    return values[0] if len(values) == 1 else ""


def read_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Read addresses and networks, such as 10.0.0.0/8.

    Raises:
        ConfigError: one is neither.
    """
    networks = []
    for text in texts:
        try:
            networks.append(ipaddress.ip_network(text, strict=False))
        except ValueError:
            raise ConfigError(f"--trusted-proxy: should be an address or network, not {text!r}") from None
    return tuple(networks)
