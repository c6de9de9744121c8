"""Flags of the dashboard's login and of people's rights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from pipeline.commands.request import option
from pipeline.http.access import is_loopback
from pipeline.model.errors import ConfigError
from pipeline.settings.config import Settings

if TYPE_CHECKING:
    from pipeline.views.dashboard import Login, Oidc

_NEED_ISSUER = ("oidc_client", "public_url", "triage_group", "read_group")


@dataclass(frozen=True, slots=True)
class LoginFlags:
    """Values of the login flags, by the flags' names."""

    user_header: str = option("", metavar="NAME", help="Header in which a reverse proxy names the user.")
    trusted_proxy: tuple[str, ...] = option(
        metavar="NETWORK", help="Network whose --user-header is believed."
    )
    triage: tuple[str, ...] = option(
        metavar="USER", help="User who may answer; * is everybody. All others only read."
    )
    oidc_issuer: str = option("", metavar="URL", help="Provider at which people log in.")
    oidc_client: str = option("", metavar="ID", help="Id of this dashboard at the provider.")
    oidc_groups_claim: str = option("groups", metavar="CLAIM", help="Claim that names people's groups.")
    public_url: str = option("", metavar="URL", help="Address at which people reach this dashboard.")
    triage_group: tuple[str, ...] = option(metavar="GROUP", help="Group whose members may answer.")
    read_group: tuple[str, ...] = option(
        metavar="GROUP", help="Group whose members may read (default: all who log in)."
    )
    open_badges: bool = option(help="Show badges of services to everybody, without a login.")

    def check(self, host: str) -> None:
        """Refuse flags that exclude or miss each other.

        Raises:
            UsageError: the flag that lacks another one, or excludes it.
            ConfigError: without a login other machines could reach ``host``.
        """
        if self.user_header and not self.trusted_proxy:
            raise click.UsageError("--user-header needs --trusted-proxy: anybody can send a header")
        if self.oidc_issuer and self.user_header:
            raise click.UsageError("--user-header and --oidc-issuer: one of them knows who somebody is")
        for name in _NEED_ISSUER:
            if getattr(self, name) and not self.oidc_issuer:
                raise click.UsageError(f"--{name.replace('_', '-')} needs --oidc-issuer")
        if not self.user_header and not self.oidc_issuer and not is_loopback(host):
            raise ConfigError(
                f"--host: {host} can be reached from other machines: give --user-header or --oidc-issuer too"
            )

    def login(self, settings: Settings) -> Login:
        """Return how people and programs are authenticated.

        Raises:
            ConfigError: a proxy is no network.
        """
        from pipeline.views.dashboard import Login, read_networks

        return Login(
            header=self.user_header,
            proxies=read_networks(self.trusted_proxy),
            triage=frozenset(self.triage),
            token=settings.token,
            sessions=bool(self.oidc_issuer),
            open_badges=self.open_badges,
        )

    def oidc(self, settings: Settings) -> Oidc | None:
        """Return the provider that logs people in; None without one.

        Raises:
            ConfigError: an address is not encrypted, or the client is missing.
        """
        from pipeline.views.dashboard import Oidc, Provider, Roles, Sessions

        if not self.oidc_issuer:
            return None
        secret = settings.oidc_secret.get_secret_value() if settings.oidc_secret else ""
        provider = Provider(
            issuer=self.oidc_issuer,
            client=self.oidc_client,
            public_url=self.public_url,
            secret=secret,
            groups_claim=self.oidc_groups_claim,
        )
        roles = Roles(frozenset(self.triage), frozenset(self.triage_group), frozenset(self.read_group))
        return Oidc(provider, Sessions(roles, secret))
