from __future__ import annotations

import pytest

from pipeline.model.errors import ConfigError
from pipeline.views.dashboard.access import Login, Person, read_networks

PROXIED = Login("X-User", read_networks(["10.0.0.0/8", "::1"]), frozenset({"ada"}), "secret-token")


@pytest.mark.parametrize(
    ("peer", "headers", "person"),
    [
        ("10.1.2.3", {"X-User": "ada"}, Person("ada", may_answer=True)),
        ("10.1.2.3", {"X-User": "bob"}, Person("bob", may_answer=False)),
        ("::1", {"X-User": "bob"}, Person("bob", may_answer=False)),
        ("192.168.0.1", {"X-User": "ada"}, None),
        (None, {"X-User": "ada"}, None),
        ("10.1.2.3", {}, None),
        (
            "192.168.0.1",
            {"Authorization": "Bearer secret-token"},
            Person("api", may_answer=True, by_token=True),
        ),
        ("10.1.2.3", {"Authorization": "Bearer wrong", "X-User": "ada"}, None),
    ],
)
def test_a_person_is_who_a_trusted_proxy_or_a_token_names(
    peer: str | None, headers: dict[str, str], person: Person | None
) -> None:
    assert PROXIED.person(peer, headers) == person


def test_everybody_may_be_let_answer_and_without_a_login_a_token_is_no_password() -> None:
    login = Login("X-User", read_networks(["10.0.0.1"]), frozenset({"*"}))
    assert login.person("10.0.0.1", {"X-User": "bob"}) == Person("bob", may_answer=True)
    assert Login().person("127.0.0.1", {}) == Person("local", may_answer=True)
    assert Login().person("127.0.0.1", {"Authorization": "Bearer any"}) is None


@pytest.mark.parametrize("host", ["127.0.0.1:8088", "localhost", "[::1]:80", "[::1]", "evil.example:80"])
def test_without_a_login_no_other_name_leads_here(host: str) -> None:
    assert Login().knows_host(host) is (not host.startswith("evil"))
    assert PROXIED.knows_host(host)


def test_a_wrong_network_is_named() -> None:
    with pytest.raises(ConfigError, match="--trusted-proxy: .*'ten'"):
        read_networks(["ten"])
