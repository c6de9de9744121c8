"""A diff with its work tree modifies what a commit with the same content does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agents.source.changes import DIFF, Repository, WorkTree, describe_commit, parse_diff
from agents.source.changes.history import Described
from pipeline.model.errors import ConfigError
from tests.support.repositories import Work

SHOP = "import os\n\n\ndef price(x):\n    return x\n\n\nclass Cart:\n    def total(self):\n        return 1\n"
GO = "package api\n\nfunc (b *Basket) Total() int {\n\treturn 1\n}\n\nfunc Other() {\n\tprintln(1)\n}\n"
BEFORE: dict[str, str | bytes | None] = {
    "shop/__init__.py": "",
    "shop/pricing.py": SHOP,
    "shop/gone.py": "def gone():\n    pass\n",
    "shop/old name.py": SHOP,
    "shop/moved.py": SHOP,
    "go.mod": "module example.org/shop\n",
    "api/basket.go": GO,
    "README.md": "words\n",
    "logo.png": b"\0\1\2",
}
AFTER: dict[str, str | bytes | None] = {
    "shop/pricing.py": SHOP.replace("return x", "return 2 * x").replace("import os", "import sys"),
    "shop/gone.py": None,
    "shop/new/__init__.py": "",
    "shop/new/fresh.py": "def fresh():\n    return 1\n",
    "shop/old name.py": None,
    "shop/other.py": SHOP.replace("return 1", "return 2"),
    "shop/moved.py": None,
    "shop/alone.py": SHOP,
    "api/basket.go": GO.replace("return 1", "return 2"),
    "README.md": "other words\n",
    "logo.png": b"\0\1\3",
}


@pytest.fixture
def work(tmp_path: Path) -> Work:
    work = Work(tmp_path / "repository")
    work.commit("Before", BEFORE)
    work.commit("After", AFTER)
    return work


def diff_of(work: Work, *arguments: str) -> bytes:
    command = ["git", "-C", str(work.path), "diff", *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout


def described(work: Work, diff: bytes, *, under: str = "") -> Described:
    tree = WorkTree(Repository(work.path / under), parse_diff(diff))
    return describe_commit(tree, DIFF, service="shop", time=1e9)


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["-U0"], ["--full-index", "-U10"], ["--no-prefix"], ["-M", "-C"]])
def test_subroutines_are_those_of_the_commit(work: Work, options: list[str]) -> None:
    of_commit = work.described()
    diff = diff_of(work, *options, "HEAD~1")
    found = described(work, diff, under="shop")
    assert found.change.subroutines == of_commit.change.subroutines
    assert "shop.pricing.price" in found.change.subroutines
    assert "example.org/shop/api.(*Basket).Total" in found.change.subroutines
    assert found.change.files == of_commit.change.files
    assert found.left_out == of_commit.left_out
    work.git("checkout", "--quiet", "HEAD~1")
    assert described(work, diff).change.subroutines == of_commit.change.subroutines


def test_files_that_are_not_committed_yet_count(work: Work) -> None:
    (work.path / "shop/pricing.py").write_text(SHOP.replace("return 1", "return 3"))
    found = described(work, diff_of(work, "HEAD"))
    assert found.change.subroutines == (
        "shop.pricing.<module>",
        "shop.pricing.Cart.total",
        "shop.pricing.price",
    )


def test_a_work_tree_of_neither_version_is_refused(work: Work) -> None:
    diff = diff_of(work, "HEAD~1", "--", "shop/pricing.py", "README.md")
    (work.path / "README.md").write_text("no code: it does not matter\n")
    assert described(work, diff).change.subroutines == ("shop.pricing.<module>", "shop.pricing.price")
    (work.path / "shop/pricing.py").write_text("def price(x):\n    return 3 * x\n")
    with pytest.raises(ConfigError, match="does not fit 'shop/pricing.py'"):
        described(work, diff)


@pytest.mark.parametrize(
    "path", ["../secret.py", "/etc/secret.py", ".git/config.py", "link.py", "way/secret.py"]
)
def test_nothing_outside_of_the_work_tree_is_read(work: Work, path: str) -> None:
    (work.path.parent / "secret.py").write_text("a = 1\n")
    (work.path / "link.py").symlink_to(work.path.parent / "secret.py")
    (work.path / "way").symlink_to(work.path.parent)
    diff = f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a = 0\n+a = 1\n".encode()
    with pytest.raises(ConfigError, match="does not fit"):
        described(work, diff)


def test_a_file_that_is_too_large_is_left_out(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.source.changes.work_tree.MAX_FILE_BYTES", 10)
    found = described(work, diff_of(work, "HEAD~1", "--", "shop/pricing.py"))
    assert found.change.subroutines == ()
    assert any("too large" in remark for remark in found.left_out)
