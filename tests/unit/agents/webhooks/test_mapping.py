"""The file that says which service each repository deploys."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.webhooks.mapping import load_service_map
from pipeline.model.errors import ConfigError
from tests.unit.agents.webhooks.test_receiver import SECRET, TOKEN

MAP = """
repositories:
  acme/shop:
    forge: github
    secret_env: SHOP_SECRET
    source_roots: [src]
    deploys:
      - {service: shop, branch: main}
      - {service: shop, environment: "prod*"}
  acme/web/till:
    forge: gitlab
    secret_file: SECRETS/till
    repository_path: clone
    routes: true
    deploys:
      - {service: till, tag: "v*"}
"""


@pytest.fixture
def map_file(tmp_path: Path) -> Path:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "till").write_text(TOKEN + "\n")
    (tmp_path / "clone").mkdir()
    path = tmp_path / "services.yaml"
    path.write_text(MAP.replace("SECRETS", str(tmp_path / "secrets")))
    return path


def test_the_service_map(map_file: Path) -> None:
    services = load_service_map(map_file, {"SHOP_SECRET": SECRET})
    shop, till = services.sources
    assert (shop.secret, till.secret) == (SECRET, TOKEN)
    assert (shop.routes, till.routes) == (False, True)
    assert (shop.source_roots, till.clone) == (("src",), map_file.parent / "clone")
    assert shop.services("branch", "main") == ("shop",)
    assert shop.services("branch", "maintenance") == ()
    assert shop.services("environment", "production") == ("shop",)
    assert till.services("tag", "v1") == ("till",)
    assert services.find("gitlab", "acme/shop") is None
    assert SECRET not in repr(services)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        pytest.param("forge: github", "forge: forge", "forge", id="forge"),
        pytest.param("branch: main", "branch: main, tag: v", "one of branch, tag", id="two occasions"),
        pytest.param("service: shop, branch: main", "service: shop", "one of branch, tag", id="none"),
        pytest.param("service: shop, branch", "service: a b, branch", "service", id="service"),
        pytest.param("    secret_env: SHOP_SECRET\n", "", "secret_env or secret_file", id="no secret"),
        pytest.param("secret_env: SHOP_SECRET", "secret: hunter2hunter2", "unknown key", id="secret inside"),
        pytest.param("SHOP_SECRET", "NOTHING", "environment NOTHING: empty", id="unset"),
        pytest.param("SHOP_SECRET", "SHORT", "shorter than 8", id="short"),
        pytest.param("SHOP_SECRET", "BAD", "base64", id="signing token"),
        pytest.param("/till\n", "/gone\n", "No such file", id="no file"),
        pytest.param("repository_path: clone", "repository_path: gone", "no such folder", id="no clone"),
        pytest.param(
            "source_roots: [src]",
            "routes: true",
            "shop: routes: .* give repository_path",
            id="routes, no clone",
        ),
        pytest.param("repositories:", "repos:", "repos: unknown key", id="key"),
        pytest.param("acme/web/till:", "acme/shop:", "stands twice", id="twice"),
        pytest.param("repositories:", "- repositories:", "yaml: should be a mapping$", id="list"),
        pytest.param("[src]", "src", "acme/shop.source_roots: should be a list", id="no list"),
    ],
)
def test_a_wrong_service_map(before: str, after: str, words: str, map_file: Path) -> None:
    text = map_file.read_text()
    assert before in text
    map_file.write_text(text.replace(before, after, 1))
    environ = {"SHOP_SECRET": SECRET, "SHORT": "short", "BAD": "whsec_???"}
    with pytest.raises(ConfigError, match=words) as raised:
        load_service_map(map_file, environ)
    assert "\n" not in str(raised.value)
    assert not any(secret in str(raised.value) for secret in (SECRET, "whsec_???", "hunter2"))
