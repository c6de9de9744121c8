"""Repositories that run programs, lie about their contents, or hold what cannot be compared."""

from __future__ import annotations

import logging
import os
import subprocess
import time
from pathlib import Path

import pytest

from agents.source import parser_process
from agents.source.changes import definitions, git_program, history
from agents.source.changes.bounds import FILES_BYTES, fit
from agents.source.changes.diff import parse_patch
from agents.source.changes.git import MAX_FILE_BYTES, GitError, Repository
from agents.source.changes.git_program import run_git
from agents.source.changes.history import change_message, read_change
from agents.source.changes.patch import CUT, MAX_CONTENT_BYTES, FilePatch, Hunk, PatchLine, content_of
from agents.source.syntax import Question
from pipeline.model import Change
from pipeline.processes import Output
from tests.support.repositories import Work


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path / "repo")


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A program that leaves a file ``ran`` beside it when it is run."""
    path = tmp_path / "canary"
    path.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\ncat 2>/dev/null\n")
    path.chmod(0o755)
    return path


def ran(canary: Path) -> bool:
    return (canary.parent / "ran").exists()


def test_no_program_of_the_repository_runs(work: Work, canary: Path) -> None:
    work.commit(
        "Old", {".gitattributes": "* diff=evil filter=evil\n", "a.py": "x = 1\n", "a.go": "func F() {\n"}
    )
    work.commit("New", {"a.py": "x = 2\n", "a.go": "func F() {}\n"})
    for key in (
        *("core.fsmonitor", "core.pager", "core.sshCommand", "core.askPass", "core.editor", "gpg.program"),
        *("diff.external", "diff.evil.command", "diff.evil.textconv", "filter.evil.smudge"),
        *(
            "filter.evil.clean",
            "filter.evil.process",
            "pager.show",
            "pager.diff-tree",
            "interactive.diffFilter",
        ),
    ):
        work.git("config", key, str(canary))
    work.git("config", "core.hooksPath", str(canary.parent / "hooks"))
    work.git("config", "log.showSignature", "true")
    (canary.parent / "hooks").mkdir()
    for hook in ("post-index-change", "fsmonitor-watchman", "reference-transaction", "post-checkout"):
        (canary.parent / "hooks" / hook).symlink_to(canary)
    (work.path / "a.py").touch()
    described = work.described()
    repository = Repository(work.path)
    repository.tags("*")
    repository.branch_tip("main")
    repository.commits("HEAD~1..HEAD")
    assert described.change.subroutines == ("a.<module>", "main.F")
    assert not ran(canary)


def test_a_partial_clone_fetches_nothing(work: Work, canary: Path, tmp_path: Path) -> None:
    work.commit("Old", {"a.py": "x = 1\n"})
    work.commit("New", {"a.py": "x = 2\n"})
    work.git("config", "uploadpack.allowFilter", "true")
    partial = tmp_path / "partial"
    clone = ["git", "clone", "--quiet", "--bare", "--filter=blob:none", f"file://{work.path}", str(partial)]
    subprocess.run(clone, check=True, capture_output=True)
    config = {
        "remote.origin.url": f"ext::{canary}",
        "protocol.ext.allow": "always",
        "protocol.allow": "always",
    }
    for key, value in config.items():
        subprocess.run(["git", "-C", str(partial), "config", key, value], check=True)
    repository = Repository(partial)
    described = history.describe_commit(repository, repository.commit("HEAD"), service="s", time=1e9)
    assert not ran(canary)
    assert described.change.files == ("a.py",)
    assert described.change.subroutines == ()
    assert any("a.py" in remark or "lines" in remark for remark in described.left_out)


def test_the_callers_git_variables_name_no_other_repository(
    work: Work, tmp_path: Path, canary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = work.commit("Mine", {"a.py": "x = 1\n"})
    other = Work(tmp_path / "other")
    other.commit("Theirs", {"b.py": "x = 1\n"})
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(canary))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(canary))
    assert Repository(work.path).commit("HEAD").sha == sha
    assert not ran(canary)


@pytest.mark.parametrize(
    "name", ["--upload-pack=touch ran", "-c", "--git-dir=x", "with\nnewline", "a'b\"c", "$(x)"]
)
def test_a_repository_whose_folder_has_an_odd_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work(tmp_path / name)
    sha = work.commit("Change", {"a.py": "x = 1\n"})
    monkeypatch.chdir(tmp_path)
    assert Repository(Path(name)).commit("HEAD").sha == sha
    with pytest.raises(GitError, match="no such folder"):
        Repository(Path("--upload-pack=nothing"))


@pytest.mark.parametrize(
    "revision", ["--output=x", "-p", "HEAD\n--all", "@{upstream}", "HEAD\0", ":/", "HEAD^{tree}", "../x", "!"]
)
def test_a_hostile_revision_is_refused(work: Work, revision: str) -> None:
    work.commit("Change", {"a.py": "x = 1\n"})
    repository = Repository(work.path)
    with pytest.raises(GitError, match="no commit"):
        repository.commit(revision)
    with pytest.raises(GitError, match="no commit|should be A..B"):
        repository.commits(f"HEAD..{revision}")
    with pytest.raises(GitError, match="no branch"):
        repository.branch_tip(revision)
    assert not repository.has_commit(revision)
    assert repository.tags(revision) == []


def test_hostile_file_names_are_reported_as_they_are(work: Work) -> None:
    names = [
        "-rf.py",
        "--help.py",
        "a\nb.py",
        'q"uote.py',
        "\x1b[31mred.py",
        "sp ace.go",
        "dots../x.py",
        "é.py",
    ]
    work.commit("Change", dict.fromkeys(names, "def f(): pass\n"))
    (work.path / os.fsdecode(b"latin\xe9.py")).write_text("def g(): pass\n")
    work.commit("Bytes")
    assert set(work.described("HEAD~1").change.files) == set(names)
    assert "-rf.f" in work.described("HEAD~1").change.subroutines
    assert "\x1b" not in work.described("HEAD~1").change.content
    described = work.described()
    assert described.change.files == ("latin\ufffd.py",)
    assert described.change.subroutines == ("latin\ufffd.g",)
    change_message(described.change)


def test_what_cannot_be_compared_is_said(work: Work, caplog: pytest.LogCaptureFixture) -> None:
    sub = work.commit("First", {"fine.py": "def f(): return 1\n", "latin.c": b"int f() { return '\xe9'; }\n"})
    (work.path / "link.py").symlink_to("fine.py")
    work.git("update-index", "--add", "--cacheinfo", f"160000,{sub},module")
    (work.path / "module").mkdir()
    work.commit(
        "Second",
        {
            "image.png": bytes(range(256)),
            "data.py": b"\x00" * 10,
            "broken.py": "def g(:\n    pass\n",
            "fine.py": "def f(): return 2\n",
            "latin.c": b"int f() { return '\xe8'; }\n",
            "huge.py": b"x = 1\n" * (MAX_FILE_BYTES // 6 + 1),
        },
    )
    change = work.described().change
    assert change.subroutines == ("broken.g", "data.<module>", "f", "fine.f")
    assert "-def f(): return 1\n+def f(): return 2" in change.content
    remarks = " | ".join(work.described().left_out)
    assert "'broken.py', 'data.py', not valid Python or too large: compared by indentation" in remarks
    assert "the subroutines of 'huge.py', too large or missing" in remarks
    assert "the lines of 'data.py', 'huge.py', 'image.png', binary or too large" in remarks
    assert "'link.py', 'module', a link or submodule" in remarks
    repository = Repository(work.path)
    with caplog.at_level(logging.WARNING):
        read_change(repository, repository.commit("HEAD"), service="shop", time=1e9)
    (record,) = caplog.records
    assert "shop: " in record.getMessage()
    assert "\n" not in record.getMessage()


def test_an_ordinary_commit_leaves_nothing_out(work: Work) -> None:
    work.commit("Old", {"a.py": "x = 1\n", "b.go": "package b\n", "c.txt": "x\n", "mode.sh": "x\n"})
    work.commit("New", {"a.py": "x = 2\n", "b.go": None, "d.txt": "x\n", "c.txt": None})
    (work.path / "mode.sh").chmod(0o755)
    work.commit("Mode")
    work.commit("Empty")
    assert [work.described(f"HEAD~{back}").left_out for back in range(4)] == [()] * 4


def test_a_commit_of_very_many_files(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_SOURCES", 10)
    work.commit("Many", {f"{'d' * 200}/{index:04}.py": "def f(): pass\n" for index in range(1600)})
    described = work.described()
    assert len(described.change.subroutines) == 10
    assert 1000 < len(described.change.files) < 1600
    assert "the subroutines of 1590 source files, of 1600" in described.left_out
    assert any(remark.endswith(" of 1600 files") for remark in described.left_out)
    assert len(change_message(described.change).value) < 1024**2


def test_an_oversized_diff_is_cut(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.source.changes.git.MAX_PATCH_BYTES", 2000)
    work.commit(
        "Big", {"a.txt": "word\n" * 50, "b.txt": "line\n" * 1000, "c.go": "package c\n\nfunc F() {\n}\n"}
    )
    described = work.described()
    assert any(remark.startswith("lines: the diff is larger than") for remark in described.left_out)
    assert described.change.files == ("a.txt", "b.txt", "c.go")
    assert "+word" in described.change.content


@pytest.fixture
def slow_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git that prints a word and then sleeps."""
    binary = tmp_path / "bin" / "git"
    binary.parent.mkdir()
    binary.write_text("#!/bin/sh\necho word\nexec sleep 60\n")
    binary.chmod(0o755)
    monkeypatch.setenv("PATH", str(binary.parent), prepend=os.pathsep)
    return binary


def test_a_git_that_does_not_end_is_ended(slow_git: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    output = run_git(tmp_path, ["status"], stdin=b"", max_bytes=100, timeout_s=2.0)
    assert (output.data, output.cut) == (b"word\n", "took longer than 2 s")
    with pytest.raises(GitError, match="took longer than"):
        Repository(tmp_path, timeout_s=0.1)
    assert time.monotonic() - began < 50


def test_what_git_prints_is_bounded(work: Work) -> None:
    work.commit("Change", {"a.txt": "x" * 100_000})
    output = run_git(work.path, ["show", "HEAD"], stdin=b"", max_bytes=1000, timeout_s=30)
    assert len(output.data) == 1000
    assert output.cut.startswith("is larger than")


def test_a_patch_that_looks_like_a_patch(work: Work) -> None:
    """Lines of a file that look like the patch's own are lines of the file."""
    fake = "diff --git a/x b/x\nindex 0000..1111 100644\n@@ -1 +1 @@ func Evil() {\n-a\n+b\nBinary files\n"
    work.commit("Old", {"a.diff": "x\n"})
    work.commit("New", {"a.diff": fake})
    change = work.described().change
    assert change.content == "\n".join(["a.diff", "-x", *(f"+{line}" for line in fake.splitlines())])


@pytest.mark.parametrize("cut", range(0, 200, 7))
def test_a_patch_that_breaks_off_gives_what_is_whole(cut: int) -> None:
    patch = b"diff --git a/x b/x\nindex %s..%s 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,1 @@ f\n-a\n-b\n+c\n"
    whole = patch % (b"1" * 40, b"2" * 40)
    for file in parse_patch(whole[:cut]):
        assert all(line.text in ("a", "b", "c", "") for h in file.hunks for line in (*h.removed, *h.added))


def test_no_newline_at_the_end_of_a_file() -> None:
    blobs = b"index %s..%s 100644\n" % (b"1" * 40, b"2" * 40)
    marker = b"\\ No newline at end of file\n"
    patch = b"diff --git a/x b/x\n" + blobs + b"@@ -3 +3 @@ f\n-a\n" + marker + b"+b\n" + marker
    (file,) = parse_patch(patch)
    assert file.hunks == [Hunk((PatchLine(3, "a"),), (PatchLine(3, "b"),))]


def patch_of(lines: int, width: int = 60) -> FilePatch:
    added = tuple(PatchLine(number, "w" * width) for number in range(lines))
    return FilePatch(("1" * 40, "2" * 40), [Hunk((), added)])


def test_content_is_bounded_and_fair() -> None:
    content = content_of(
        [("lock.txt", patch_of(5000)), ("small.py", patch_of(10)), ("other.txt", patch_of(3000))]
    )
    assert len(content.encode()) <= MAX_CONTENT_BYTES
    assert len(content.encode()) > 0.95 * MAX_CONTENT_BYTES
    sections = content.split("small.py\n")
    assert sections[0].endswith(f"{CUT}\n")
    assert sections[1].count("+") > 150, "small files are whole, the large ones share the rest"
    assert sections[1].startswith(("+" + "w" * 60 + "\n") * 10 + "other.txt")


def test_content_of_very_many_files_is_bounded() -> None:
    assert (
        len(content_of([(f"{index}", patch_of(3)) for index in range(20_000)]).encode()) <= MAX_CONTENT_BYTES
    )


def test_a_change_of_escapes_fits() -> None:
    nasty = tuple("\x01" * 300 + str(index) for index in range(2000))
    change, left_out = fit(Change("x", "s", 1e9, "\x01" * 9000, "", "\x01" * 90_000, nasty, nasty))
    assert len(change_message(change).value) < 1024**2
    assert len(left_out) == 3
    assert sum(len(name) * 6 for name in change.files) < 1.01 * FILES_BYTES


def test_a_comparison_that_fails_leaves_the_change(work: Work) -> None:
    sha = work.commit("Old", {"a.py": "x = 1\n"})
    work.commit("New", {"a.py": "x = 2\n"})
    tree = work.git("rev-parse", f"{sha}^{{tree}}")
    (work.path / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    described = work.described()
    assert (described.change.title, described.change.files) == ("New", ())
    assert described.left_out[0].startswith("what it changed: ")


def test_a_tree_that_cannot_be_listed_shortens_names(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    work.commit("Change", {"shop/__init__.py": "", "shop/a.py": "def f(): pass\n"})

    def fail(*_: object) -> frozenset[str]:
        raise GitError("git ls-tree is larger than 128 MiB")

    monkeypatch.setattr(Repository, "paths", fail)
    described = work.described()
    assert described.change.subroutines == ("a.f",)
    assert described.left_out == ("the packages of Python modules: git ls-tree is larger than 128 MiB",)


def test_a_commit_that_takes_too_long_to_look_into(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "LOOK_S", -1.0)
    work.commit(
        "Change", {"a.py": "x = 1\n", "b.py": "x = 1\n", "c.go": "package c\n\nfunc F() {\n\tf()\n}\n"}
    )
    described = work.described()
    assert described.change.files == ("a.py", "b.py", "c.go")
    assert described.change.subroutines == ()
    assert described.left_out == (
        "the subroutines of 2 files: took longer than -1 s",
        "the subroutines of 1 files: took longer than -1 s",
    )


def test_very_many_hunks_take_no_time(work: Work) -> None:
    """Not quadratic: with every second line changed this would take minutes."""
    lines = [f"int f{number}(int x) {{ return x + {number}; }}" for number in range(6000)]
    work.commit("Old", {"a.c": "\n".join(lines)})
    lines[::2] = [line.replace("x +", "x -") for line in lines[::2]]
    work.commit("New", {"a.c": "\n".join(lines)})
    described = work.described()
    assert len(described.change.subroutines) == 3000
    assert described.left_out == ()


@pytest.mark.slow
def test_a_source_that_cannot_be_parsed_is_said(work: Work) -> None:
    work.commit("Change", {"a.cpp": "{" * 1_000_000, "b.go": "package b\n\nfunc F() {\n\tf()\n}\n"})
    described = work.described()
    assert described.change.subroutines == ("b.F",)
    assert described.left_out == ("some subroutines of 'a.cpp', which could not be parsed in time",)


def test_git_has_limits_and_sees_nothing_of_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = tmp_path / "bin" / "git"
    stand_in.parent.mkdir()
    stand_in.write_text("#!/bin/sh\nsleep 1\nenv\ncat /proc/self/limits\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stand_in.parent}:{os.environ['PATH']}")
    for name in ("AWS_SECRET_ACCESS_KEY", "SMIDGEN_STORE", "SMIDGEN_HTTP_TOKEN", "GIT_DIR", "MY_PASSWORD"):
        monkeypatch.setenv(name, "canary")
    said = run_git(tmp_path, ["log"], stdin=b"", max_bytes=1 << 16, timeout_s=20).data.decode()
    assert "canary" not in said
    assert "GIT_CONFIG_NOSYSTEM=1" in said
    limits = {
        line[:26].strip(): line[26:].split()[:2] for line in said.splitlines() if line.startswith("Max")
    }
    assert limits["Max address space"] == [str(git_program.MEMORY_BYTES)] * 2
    assert limits["Max file size"] == [str(git_program.WRITTEN_BYTES)] * 2
    assert limits["Max cpu time"] == ["21", "21"]
    assert limits["Max core file size"] == ["0", "0"]


def test_what_reads_sources_sees_nothing_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, str] = {}

    def run(*_: object, environment: dict[str, str], **__: object) -> Output:
        given.update(environment)
        return Output(b"", 0)

    monkeypatch.setenv("MY_PASSWORD", "canary")
    monkeypatch.setattr(parser_process, "run_bounded", run)
    definitions.read_definitions([Question("go", b"package a", [1])], timeout_s=5)
    assert "PATH" in given
    assert "canary" not in given.values()
