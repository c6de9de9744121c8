from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agents.source.changes.git import GitError, Repository
from agents.source.changes.git_program import run_git
from agents.source.changes.history import change_message, module_of, read_change
from agents.source.changes.subroutines import compare_python
from pipeline.messages.inputs import decode_change
from pipeline.model import Change
from pipeline.processes import Output
from tests.support.repositories import Work


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path / "repo")


OLD = """
import json
RATE = 2

def plain(a):
    return a

@cached
def decorated():
    return [x * RATE for x in range(3)]

class C:
    size = 1

    def method(self):
        def inner():
            return lambda: 1
        return inner

    @property
    def value(self):
        return self._v

    @value.setter
    def value(self, v):
        self._v = v

async def later():
    await x
"""


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param("return a\n", "return a + 1\n", ["plain"], id="function"),
        pytest.param("def plain(a)", "def plain(a, b=1)", ["plain"], id="signature"),
        pytest.param("@cached", "@cached(8)", ["decorated"], id="decorator"),
        pytest.param("x * RATE", "x + RATE", ["decorated"], id="comprehension counts for its function"),
        pytest.param("lambda: 1", "lambda: 2", ["C.method.inner"], id="lambda in a nested function"),
        pytest.param("return inner\n", "return inner()\n", ["C.method"], id="around a nested function"),
        pytest.param("size = 1", "size = 2", ["C"], id="class body"),
        pytest.param("self._v = v", "self._v = int(v)", ["C.value"], id="setter of a property"),
        pytest.param("await x", "await y", ["later"], id="async function"),
        pytest.param("RATE = 2", "RATE = 3", ["<module>"], id="module"),
        pytest.param("import json", "import json, os", ["<module>"], id="import"),
        pytest.param("async def later():\n    await x\n", "", ["later"], id="deleted function"),
        pytest.param("def plain", "def renamed", ["plain", "renamed"], id="renamed function"),
        pytest.param("class C:", "class D:", ["C", "C.method", "C.method.inner", "C.value", "D", "D.method",
                     "D.method.inner", "D.value"], id="renamed class"),
        pytest.param("RATE = 2\n", "RATE = 2\n\ndef new():\n    pass\n", ["new"], id="added function"),
        pytest.param("    return a\n", "    # why\n    return (a)\n\n\n", [], id="comment and formatting"),
        pytest.param("    return a\n", '    """Doc."""\n    return a\n', [], id="docstring"),
    ],
)  # fmt: skip
def test_modified_scopes(before: str, after: str, expected: list[str]) -> None:
    assert before in OLD
    assert list(compare_python(OLD.encode(), OLD.replace(before, after).encode()).modified) == expected


def test_a_function_that_moves_is_not_modified() -> None:
    a, b = "def a():\n    return 1\n", "def b():\n    return 2\n"
    assert list(compare_python((a + b).encode(), (b + a).encode()).modified) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, b"x = 1\ndef f(): pass\n", ["<module>", "f"], id="added file"),
        pytest.param(b"def f(): pass\n", None, ["f"], id="deleted file"),
        pytest.param(None, b'"""Doc."""\n', [], id="nothing but a docstring"),
        pytest.param(None, b"", [], id="empty file"),
        pytest.param(None, None, [], id="no version"),
        pytest.param(b"\xff\xfe\x00", b"\x00\x01", ["<module>"], id="binary"),
        pytest.param(b"# coding: latin1\n'\xe9'()", b"# coding: latin1\n'\xe8'()", ["<module>"], id="latin"),
        pytest.param(b"x = '\\d'\n", b"x = '\\w'\n", ["<module>"], id="invalid escape"),
        pytest.param(None, b"(" * 5000, ["<module>"], id="absurd nesting"),
    ],
)  # fmt: skip
def test_whole_files(old: bytes | None, new: bytes | None, expected: list[str]) -> None:
    assert list(compare_python(old, new).modified) == expected


def test_a_file_that_is_not_valid_is_read_by_its_indentation() -> None:
    old = "class C:\n    def f(self):\n        print 'a'\n\n    @wrap\n    def g(self, a,\n    ):\n"
    old += "        pass\n\nx = 1\n"
    new = old.replace("print 'a'", "print 'b'").replace("pass", "return  # why")
    assert list(compare_python(old.encode(), new.encode()).modified) == ["C.f", "C.g"]
    assert list(compare_python(old.encode(), old.replace("@wrap", "@other").encode()).modified) == ["C.g"]
    assert list(compare_python(old.encode(), old.replace("x = 1", "x = 2").encode()).modified) == ["<module>"]
    assert list(compare_python(b"def f():\n    return 1\n", b"def f(:\n    return 1\n").modified) == ["f"]


def test_a_commit_is_described(work: Work) -> None:
    sha = work.commit(
        "Speed up totals\n\nThey were slow.\nSecond line.", {"shop/pricing.py": "def f(): pass\n"}
    )
    change = work.change()
    assert change == Change(
        id=sha,
        service="shop",
        time=1_700_000_000.0,
        title="Speed up totals",
        author="Ada Lovelace <ada@example.org>",
        summary="They were slow.\nSecond line.",
        files=("shop/pricing.py",),
        subroutines=("pricing.f",),
        content="shop/pricing.py\n+def f(): pass",
    )
    message = change_message(change)
    assert (message.topic, message.key) == ("changes", "shop")
    assert decode_change(message.value) == change


def test_modules_are_named_as_in_stack_frames(work: Work) -> None:
    work.commit(
        "Change",
        {"src/shop/__init__.py": "", "src/shop/api/__init__.py": "", "src/shop/api/v1.py": "def f(): pass\n"},
    )
    assert work.change().subroutines == ("shop.api.v1.f",)
    work.commit("Change", {"src/shop/__init__.py": "def g(): pass\n"})
    assert work.change().subroutines == ("shop.g",)


@pytest.mark.parametrize(
    ("path", "roots", "module"),
    [
        pytest.param("src/shop/a.py", (), "shop.a", id="package below src"),
        pytest.param("services/till/till/a.py", (), "till.a", id="package deep below"),
        pytest.param("tools/run.py", (), "run", id="no package"),
        pytest.param("setup.py", (), "setup", id="top"),
        pytest.param("tools/sub/run.py", ("tools",), "sub.run", id="root given"),
        pytest.param("tools/sub/run.py", ("tools", "tools/sub/"), "run", id="the deepest root counts"),
        pytest.param("tools/run.py", ("./",), "tools.run", id="the repository is the root"),
        pytest.param("src/shop/a.py", ("tools",), "shop.a", id="another root"),
    ],
)
def test_module_of(path: str, roots: tuple[str, ...], module: str) -> None:
    paths = {"src/shop/__init__.py", "services/till/till/__init__.py"}
    assert module_of(path, paths, roots) == module


def test_a_deleted_module_is_named_by_where_it_was(work: Work) -> None:
    work.commit("Change", {"shop/__init__.py": "x = 1\n", "shop/old.py": "def f(): pass\n", "other.py": ""})
    work.commit("Change", {"shop/__init__.py": None, "shop/old.py": None})
    assert work.change().subroutines == ("shop.<module>", "shop.old.f")
    assert set(work.change().files) == {"shop/__init__.py", "shop/old.py"}


def test_a_renamed_file_is_compared_with_itself(work: Work) -> None:
    body = "".join(f"def f{i}():\n    return {i}\n\n" for i in range(20))
    work.commit("Change", {"shop/__init__.py": "", "shop/a.py": body})
    work.commit("Change", {"shop/a.py": None, "shop/b.py": body.replace("return 7", "return 70")})
    assert work.change().subroutines == ("shop.b.f7",)
    assert work.change().files == ("shop/b.py",)


def test_a_merge_is_compared_with_its_first_parent(work: Work) -> None:
    work.commit("Change", {"a.py": "def f(): pass\n", "b.py": "def g(): pass\n"})
    work.git("checkout", "--quiet", "-b", "side")
    first = work.commit("Side", {"b.py": "def g(): return 1\n"})
    work.git("checkout", "--quiet", "main")
    work.commit("Main", {"a.py": "def f(): return 1\n"})
    work.git("merge", "--quiet", "--no-ff", "--message", "Merge side", "side")
    assert work.change().subroutines == ("b.g",)
    titles = [commit.title for commit in Repository(work.path).commits(f"{first}~1..HEAD")]
    assert titles == ["Main", "Merge side"]


def test_a_range_is_oldest_first_and_leaves_its_start_out(work: Work) -> None:
    work.commit("one", {"a.py": "x = 1\n"})
    work.git("tag", "v1")
    second, third = work.commit("two", {"a.py": "x = 2\n"}), work.commit("three", {"a.py": "x = 3\n"})
    commits = Repository(work.path).commits("v1..main")
    assert [(commit.sha, commit.title) for commit in commits] == [(second, "two"), (third, "three")]
    assert all(abs(commit.time - commits[0].time) < 600 for commit in commits)


def test_commits_that_are_read_ahead_are_described_as_by_themselves(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What reading ahead could trip over: an empty commit, a rename, and what looks like an id."""
    odd = "a" * 40
    work.commit("First", {"pkg/__init__.py": "", "pkg/a.py": "def f(): return 1\n", odd: "x\n"})
    work.commit("An id alone", {"pkg/a.py": f"def f():\n    return 2\n\n{odd}\n", odd: f"{odd}\n"})
    work.git("commit", "--quiet", "--allow-empty", "--message", "Empty")
    work.git("mv", "pkg/a.py", "pkg/b.py")
    work.commit("Move", {"pkg/__init__.py": "y = 1\n"})
    work.git("rm", "--quiet", "pkg/__init__.py")
    work.commit("Line\n\nof\nseveral lines", {"pkg/b.py": "def f():\n    return 3\n", "c.go": "package c\n"})
    repository = Repository(work.path)
    commits = repository.commits_since([], "main")
    alone = [read_change(repository, commit, service="s", time=1e9) for commit in commits]
    asked: list[str] = []
    original = run_git

    def counted(path: Path, arguments: Sequence[str], **options: Any) -> Output:
        asked.append(next(one for one in arguments if not one.startswith("-") and "=" not in one))
        return original(path, arguments, **options)

    monkeypatch.setattr("agents.source.changes.git.run_git", counted)
    ahead = Repository(work.path)
    ahead.read_ahead(commits)
    assert [read_change(ahead, commit, service="s", time=1e9) for commit in commits] == alone
    assert [change.title for change in alone] == ["First", "An id alone", "Empty", "Move", "Line"]
    assert (asked.count("diff-tree"), asked.count("ls-tree")) == (2, 1)


def test_what_is_too_much_for_reading_ahead_is_read_by_itself(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        work.commit(name, {f"{name}.py": "x = 1\n" * 150})
    repository = Repository(work.path)
    commits = repository.commits_since([], "main")
    monkeypatch.setattr("agents.source.changes.git.MAX_PATCH_BYTES", 2000)
    repository.read_ahead(commits)
    (_, first), (_, second) = (repository.patches(commit) for commit in commits)
    assert (first, second) == ("", "")
    assert read_change(repository, commits[0], service="s", time=1e9).subroutines == ("a.<module>",)


def test_definitions_of_the_same_text_are_the_same() -> None:
    twice = b"def f(): return 1\ndef f(): return 2\nclass C:\n    def g(self): return 1\n"
    turned = b"def f(): return 2\ndef f(): return 1\nclass C:\n\n    def g(self): return 3\n"
    assert compare_python(twice, turned).modified == ("C.g", "f")


def test_files_of_every_kind(work: Work) -> None:
    (work.path / "data.bin").write_bytes(bytes(range(256)))
    (work.path / "with space é\n.txt").write_text("x")
    (work.path / "link.py").symlink_to("nowhere.py")
    work.commit("Change", {"broken.py": "def f(:\n", "binary.py": b"\x00\xff", "fine.py": "def g(): pass\n"})
    change = work.change()
    assert set(change.files) == {
        "data.bin",
        "with space é\n.txt",
        "link.py",
        "broken.py",
        "binary.py",
        "fine.py",
    }
    assert change.subroutines == ("binary.<module>", "broken.f", "fine.g")


def test_an_empty_commit_and_a_changed_mode_modify_nothing(work: Work) -> None:
    work.commit("Change", {"a.py": "x = 1\n"})
    work.commit()
    assert (work.change().files, work.change().subroutines) == ((), ())
    (work.path / "a.py").chmod(0o755)
    work.commit()
    assert (work.change().files, work.change().subroutines) == (("a.py",), ())


def test_a_shallow_clone_blames_nothing(work: Work, tmp_path: Path) -> None:
    work.commit("Change", {"a.py": "x = 1\n"})
    work.commit("Change", {"a.py": "x = 2\n"})
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{work.path}", str(shallow)], check=True)
    repository = Repository(shallow)
    change = read_change(repository, repository.commit("HEAD"), service="s", time=1e9)
    assert (change.files, change.subroutines) == ((), ())


def test_a_commit_of_any_size_fits_into_a_message(work: Work) -> None:
    body = "".join(f"def {'f' * 100}{i}(): pass\n" for i in range(20_000))
    work.commit("x" * 10_000 + "\n\n" + "y" * 100_000, {"a.py": body})
    message = change_message(work.change())
    assert len(message.value) < 1024**2
    assert len(decode_change(message.value).subroutines) > 1000


@pytest.mark.parametrize("revision", ["nothing", "--help", "", "HEAD~99", "-", "HEAD:a.py"])
def test_a_wrong_revision_is_an_error(work: Work, revision: str) -> None:
    work.commit("Change", {"a.py": "x = 1\n"})
    with pytest.raises(GitError, match="no commit"):
        Repository(work.path).commit(revision)


@pytest.mark.parametrize("span", ["HEAD", "..HEAD", "HEAD..", "HEAD...HEAD", "--all..HEAD", "HEAD..nothing"])
def test_a_wrong_range_is_an_error(work: Work, span: str) -> None:
    work.commit("Change", {"a.py": "x = 1\n"})
    with pytest.raises(GitError):
        Repository(work.path).commits(span)


def test_no_repository(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="no such folder"):
        Repository(tmp_path / "nothing")
    with pytest.raises(GitError, match="not a git repository"):
        Repository(tmp_path)


def test_a_repository_without_commits(work: Work) -> None:
    with pytest.raises(GitError, match="no commit 'HEAD'"):
        work.change()
