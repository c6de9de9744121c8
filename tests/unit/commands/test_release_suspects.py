"""``smidgen release requests --repo`` and ``smidgen release routes``: from a request to the commit."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from pipeline.cli import run, smidgen
from tests.support.repositories import Work
from tests.unit.commands.test_release_requests import tables

APP = """\
from flask import Flask
from shop import cart, stock
app = Flask(__name__)


@app.get("/cart")
def show_cart():
    return cart.total(cart.load())


@app.post("/buy")
def buy():
    return stock.take(cart.load())
"""
CART = """\
def load():
    return [1, 2]


def total(items):
    return sum(price(item) for item in items)


def price(item):
    return item
"""
SLOW = CART.replace("    return item\n", "    return sum(range(item * 1000))\n")
STOCK = "def take(items):\n    return items\n"


FILES = {"shop/__init__.py": "", "shop/app.py": APP, "shop/cart.py": CART, "shop/stock.py": STOCK}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Work:
    work = Work(tmp_path_factory.mktemp("repository") / "shop")
    work.commit("First", FILES)
    work.git("tag", "v1")
    work.commit("Take stock in one go", {"shop/stock.py": STOCK.replace("items\n", "list(items)\n")})
    work.commit("Load anew", {"shop/cart.py": CART.replace("[1, 2]", "[1, 2, 3]")})
    work.commit("Add a report that nothing calls", {"shop/report.py": "def report():\n    return 1\n"})
    work.commit("Exact prices", {"shop/cart.py": SLOW.replace("[1, 2]", "[1, 2, 3]")})
    work.commit("Document prices", {"README.md": "Prices of GET /cart."})
    work.git("tag", "v2")
    return work


def requests(folder: Path, *arguments: str) -> Result:
    files = [str(folder / name) for name in ("old.csv", "new.csv")]
    metrics = ("--metrics", str(folder / "cpu.csv"))
    command = ["release", "requests", *files, *metrics, *arguments]
    return CliRunner().invoke(smidgen, command, standalone_mode=False)


def test_the_slow_commit_of_a_callee_is_first(tmp_path: Path, shop: Work) -> None:
    tables(tmp_path, 0.2)
    source = ("--repo", str(shop.path), "--range", "v1..v2")
    (change,) = orjson.loads(requests(tmp_path, *source, "--json").output)["metrics"]["cpu"]["changes"]
    assert change["routes"]["GET /cart"] == {
        "route": "GET /cart",
        "handler": "shop.app.show_cart",
        "file": "shop/app.py",
        "line": 7,
    }
    first, second = change["suspects"]
    assert (first["subject"], first["churn"], first["author"]) == (
        "Exact prices",
        [1, 1],
        "Ada Lovelace <ada@example.org>",
    )
    assert first["methods"] == [
        {
            "method": "shop.cart.price",
            "file": "shop/cart.py",
            "line": 9,
            "path": ["shop.app.show_cart", "shop.cart.total", "shop.cart.price"],
        }
    ]
    assert "+    return sum(range(item * 1000))" in first["difference"]
    assert second["subject"] == "Load anew"
    shown = requests(tmp_path, *source).output
    assert "shop.app.show_cart → shop.cart.total → shop.cart.price (shop/cart.py:9)" in shown
    assert "5 commits: 2 modify what it may run" in shown


def test_stacks_show_calls_that_source_does_not(tmp_path: Path, shop: Work) -> None:
    tables(tmp_path, 0.2)
    profile = tmp_path / "stacks.txt"
    profile.write_text("show_cart (shop/app.py);hook (flask/app.py);report (shop/report.py) 5\n")
    source = ("--repo", str(shop.path), "--range", "v1..v2", "--profile", str(profile), "--json")
    (change,) = orjson.loads(requests(tmp_path, *source).output)["metrics"]["cpu"]["changes"]
    assert "Add a report that nothing calls" in {each["subject"] for each in change["suspects"]}


def test_a_profile_without_stacks_ends_in_one_line(
    tmp_path: Path, shop: Work, capsys: pytest.CaptureFixture[str]
) -> None:
    tables(tmp_path, 0.2)
    (tmp_path / "profile").write_bytes(b"\0garbage")
    files = [str(tmp_path / name) for name in ("old.csv", "new.csv")]
    given = ["--repo", str(shop.path), "--range", "v1..v2", "--profile", str(tmp_path / "profile"), "--json"]
    assert run(["release", "requests", *files, "--metrics", str(tmp_path / "cpu.csv"), *given]) == 2
    assert "profile: is of no format that is known" in capsys.readouterr().err


def test_a_type_without_a_route_is_said(tmp_path: Path, shop: Work) -> None:
    tables(tmp_path, 0.2)
    shop.commit("Another path", {"shop/app.py": APP.replace('"/cart"', '"/basket"')})
    result = requests(tmp_path, "--repo", str(shop.path), "--range", "v1..HEAD")
    assert result.return_value == 1
    assert "GET /cart: no route in the source answers it" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--repo", "{shop}"], "--repo and --range go together", id="no range"),
        pytest.param(
            ["--repo", "{shop}", "--range", "v1"], "--range: should be A..B", id="no range of commits"
        ),
        pytest.param(["--repo", "{shop}", "--range", "v1..v9"], "no commit 'v9'", id="unknown tag"),
        pytest.param(["--repo", "{shop}", "--range", "v2..v2"], "holds no commit", id="empty range"),
        pytest.param(["--repo", "{shop}/no", "--range", "v1..v2"], "no such folder", id="no folder"),
        pytest.param(["--profile", "{shop}/shop/app.py"], "need --repo and --range", id="profile alone"),
        pytest.param(
            ["--repo", "{shop}", "--range", "v1..v2", "--source-root", "no"],
            "no such folder in",
            id="source root",
        ),
        pytest.param(
            ["--repo", "{shop}", "--range", "v1..v2", "--profile", "no"],
            "'no' does not exist",
            id="no profile",
        ),
    ],
)
def test_mistakes_end_in_one_line(
    tmp_path: Path, shop: Work, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    tables(tmp_path, 0.0)
    files = [str(tmp_path / name) for name in ("old.csv", "new.csv")]
    given = [each.format(shop=shop.path) for each in arguments]
    code = run(["release", "requests", *files, "--metrics", str(tmp_path / "cpu.csv"), *given])
    (line,) = capsys.readouterr().err.splitlines()
    assert code == 2
    assert message in line


def test_routes_are_listed(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    for name, text in {**FILES, "shop/broken.py": "def ("}.items():
        (tmp_path / name).write_text(text)
    runner = CliRunner()
    result = runner.invoke(smidgen, ["release", "routes", str(tmp_path)], standalone_mode=False)
    assert "GET /cart" in result.output
    assert "shop/app.py:7" in result.output
    assert "2 routes in 4 files" in result.output
    assert "not read: shop/broken.py (line 1: invalid syntax)" in result.output
    shown = runner.invoke(smidgen, ["release", "routes", str(tmp_path), "--json"], standalone_mode=False)
    cart = next(orjson.loads(line) for line in shown.output.splitlines() if "/cart" in line)
    assert (cart["handler"], cart["methods"], cart["reaches"]) == ("shop.app.show_cart", ["GET"], 4)


def test_a_folder_without_source_ends_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["release", "routes", str(tmp_path)]) == 2
    assert "holds no source of a language whose routes are read" in capsys.readouterr().err


def test_changes_carry_how_near_they_come_to_routes(shop: Work, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["changes", "--repo", str(shop.path), "--service", "shop", "--dry-run", "--json", "--routes"]
    assert run([*command, "--range", "v1..v2"]) == 0
    lines = [orjson.loads(line) for line in capsys.readouterr().out.splitlines()]
    by_title = {line["title"]: {each["route"]: each for each in line["routes"]} for line in lines}
    prices = by_title["Exact prices"]
    assert [each["subroutine"] for each in prices["GET /cart"]["calls"]] == [
        "shop.app.show_cart",
        "shop.cart.total",
        "shop.cart.price",
    ]
    assert prices["POST /buy"]["nearness"] == 0.0
    assert by_title["Load anew"]["POST /buy"]["nearness"] == 0.25  # a call away, of two handlers
    assert set(by_title["Document prices"]) == {"GET /cart", "POST /buy"}


def test_a_release_without_routes_is_announced_all_the_same(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plain = Work(tmp_path / "plain")
    plain.commit("First", {"README.md": "Nothing that runs."})
    assert run(["changes", "--repo", str(plain.path), "--service", "s", "--dry-run", "--routes"]) == 0
    said = capsys.readouterr()
    assert "First" in said.out
    assert said.err.count("no routes: ") == 1
