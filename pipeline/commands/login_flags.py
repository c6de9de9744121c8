"""Flags of the dashboard's login and of people's rights."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import click

from pipeline.http.access import is_loopback
from pipeline.model.errors import ConfigError
from pipeline.settings.config import Settings

if TYPE_CHECKING:
    from pipeline.views.dashboard import Login, Oidc

_NEED_ISSUER = ("oidc_client", "public_url", "triage_group", "read_group")


@dataclass(frozen=True, slots=True)
class LoginFlags:
    """Values of the login flags, by the flags' names."""

    user_header: str = ""
    trusted_proxy: tuple[str, ...] = ()
    triage: tuple[str, ...] = ()
    oidc_issuer: str = ""
    oidc_client: str = ""
    oidc_groups_claim: str = "groups"
    public_url: str = ""
    triage_group: tuple[str, ...] = ()
    read_group: tuple[str, ...] = ()
    open_badges: bool = False

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


_OPTIONS = (
    click.option(
        "--user-header", default="", metavar="NAME", help="Header in which a reverse proxy names the user."
    ),
    click.option(
        "--trusted-proxy",
        multiple=True,
        metavar="NETWORK",
        help="Whose --user-header is believed; may be repeated.",
    ),
    click.option(
        "--triage", multiple=True, metavar="USER", help="Who may answer; * is everybody; others only read."
    ),
    click.option("--oidc-issuer", default="", metavar="URL", help="Provider at which people log in."),
    click.option("--oidc-client", default="", metavar="ID", help="As what it knows this dashboard."),
    click.option(
        "--oidc-groups-claim",
        default="groups",
        show_default=True,
        metavar="CLAIM",
        help="Names people's groups.",
    ),
    click.option("--public-url", default="", metavar="URL", help="Under which people reach this dashboard."),
    click.option(
        "--triage-group", multiple=True, metavar="GROUP", help="Whose members may answer; may be repeated."
    ),
    click.option(
        "--read-group", multiple=True, metavar="GROUP", help="Whose members may read; by default who logs in."
    ),
    click.option(
        "--open-badges",
        is_flag=True,
        help="Badges of services for everybody who reaches it, without a login.",
    ),
)


def login_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the login flags to a command; it receives ``flags``, a LoginFlags."""

    @functools.wraps(command)
    def packed(*arguments: Any, **given: Any) -> Any:
        own = {field.name: given.pop(field.name) for field in fields(LoginFlags)}
        return command(*arguments, flags=LoginFlags(**own), **given)

    for option in reversed(_OPTIONS):
        packed = option(packed)
    return packed
