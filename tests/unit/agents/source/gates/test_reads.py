from __future__ import annotations

import pytest

from agents.source.gates.reads import MOST_GATES, gates_read


@pytest.mark.parametrize(
    ("line", "gates"),
    [
        pytest.param('client.get_boolean_value("new-cart", False)', ["new-cart"], id="OpenFeature, Python"),
        pytest.param("await client.getStringDetails('cart.colour', 'red')", ["cart.colour"], id="JavaScript"),
        pytest.param('client.BooleanValue(ctx, "new_cart", false, eval)', ["new_cart"], id="Go"),
        pytest.param(
            'client.BooleanValue(context.Background(), "new_cart", false)', ["new_cart"], id="Go, a call"
        ),
        pytest.param('ld.boolVariation("new-cart", context, false)', ["new-cart"], id="LaunchDarkly, Java"),
        pytest.param("ldclient.variation('new-cart', user, False)", ["new-cart"], id="LaunchDarkly, Python"),
        pytest.param("if (unleash.isEnabled(`new-cart`)) {", ["new-cart"], id="Unleash, JavaScript"),
        pytest.param('flags.is_feature_enabled("new_cart")', ["new_cart"], id="Flagsmith"),
        pytest.param("if Feature.enabled?(:new_cart, project)", ["new_cart"], id="GitLab, Ruby"),
        pytest.param('a(is_enabled("x")) or b(is_enabled("y"))', ["x", "y"], id="two in a line"),
        pytest.param("client.get_boolean_value(name, False)", [], id="a computed gate"),
        pytest.param('title.variation_of("x")', [], id="another function"),
        pytest.param('his_enabled("x")', [], id="the end of another name"),
        pytest.param('conf.get("x")', [], id="a reader of one's own"),
        pytest.param('"new_cart"', [], id="a text alone"),
    ],
)
def test_gates_are_read_by_calls_of_flag_clients(line: str, gates: list[str]) -> None:
    assert list(gates_read([("shop/cart.py", line)])) == gates


def test_readers_may_be_named() -> None:
    lines = [("cart.py", 'self.conf.get("x")'), ("cart.py", 'confxget("y")')]
    assert gates_read(lines, ["conf.get"]) == ("x",)


@pytest.mark.parametrize(
    "path", ["tests/cart.py", "shop/test_cart.py", "cart_test.go", "src/__tests__/a.js", "a.spec.ts"]
)
def test_what_a_test_reads_runs_nowhere(path: str) -> None:
    assert gates_read([(path, 'is_enabled("x")')]) == ()


def test_one_change_has_so_many_gates_at_most() -> None:
    lines = [("a.py", f'is_enabled("g{number:04}")') for number in range(500)]
    assert len(gates_read(lines)) == MOST_GATES
