"""What git, grammars and sources say, read without trust: none of it fails, hangs or fills the memory."""

from __future__ import annotations

import subprocess
import tracemalloc
from pathlib import Path

import pytest

from agents.source.changes.definitions import read_definitions
from agents.source.changes.diff import parse_patch
from agents.source.changes.git import Repository
from agents.source.changes.git_output import (
    FileChange,
    parse_commit,
    parse_contents,
    parse_files,
    parse_sizes,
    parse_tags,
)
from agents.source.changes.languages import language_of
from agents.source.changes.modules import module_of_source
from agents.source.changes.subroutines import compare_python
from agents.source.parser_process import MAX_ENDS, decode_answer
from agents.source.python_index import MAX_NAME
from agents.source.syntax import MAX_DEPTH, Definition, Question, touched_definitions
from tests.support.repositories import Work

LONG = 300_000
SHA = "a" * 40


GOOD = Question("C++", b"int f() {\n  x();\n}\n", [2])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "piece"),
    [
        pytest.param("C++", "a<", id="gigabytes"),
        pytest.param("C++", "{", id="deep tree"),
        pytest.param("C++", "template<", id="minutes"),
        pytest.param("JavaScript", "(a=>", id="arrows"),
        pytest.param("Ruby", "<<A\n", id="heredocs"),
        pytest.param("PHP", "<?php <<<A\n", id="more heredocs"),
        pytest.param("Scala", "/*", id="comments in comments"),
        pytest.param("Rust", "r#", id="raw strings"),
    ],
)
def test_sources_made_to_be_slow_cost_only_themselves(language: str, piece: str) -> None:
    hostile = Question(language, (piece * (LONG // len(piece))).encode(), [1])
    first, second = read_definitions([hostile, GOOD], timeout_s=300, file_s=0.3)
    assert first in (None, [])
    assert second == [Definition("f")]


def test_time_for_all_sources_is_bounded() -> None:
    hostile = Question("C++", b"{" * LONG, [1])
    assert read_definitions([hostile] * (MAX_ENDS + 1) + [GOOD], timeout_s=300, file_s=0.1) == [None] * (
        MAX_ENDS + 2
    )
    assert read_definitions([GOOD], timeout_s=0) == [None]
    assert read_definitions([], timeout_s=10) == []


def test_names_and_depth_are_bounded() -> None:
    source = f"class {'A' * LONG} {{ void f() {{\n x(); }} }};".encode()
    (found,) = touched_definitions(Question("C++", source, [2]))
    assert max(map(len, found.scope)) <= MAX_NAME
    deep = b"class A {" * 1000 + b"void f() {\n x(); }"
    assert all(len(each.scope) <= MAX_DEPTH for each in touched_definitions(Question("C++", deep, [2])))


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("C++", b"void " + b"a::" * 3000 + b"f() {\n x(); }"),
        ("C++", b"namespace " + b"a::" * 3000 + b"b {\nvoid f() {\n x(); } }"),
        ("JavaScript", b"a" + b".b" * 3000 + b" = function() {\n x(); }"),
    ],
)
def test_names_of_thousands_of_parts_are_cut(language: str, source: bytes) -> None:
    (found,) = touched_definitions(Question(language, source, [2]))
    assert len(found.scope) <= MAX_DEPTH


def test_answers_that_are_none() -> None:
    lines = [
        b"[]",
        b"null",
        b"3",
        b"[1]",
        b'[{"name": 3, "scope": [[]]}]',
        b'[{"scope": 3}]',
        b"[" * 9999,
        b"\xff",
    ]
    answers = [decode_answer(list[Definition], line) for line in lines]
    assert answers[0].value == []
    assert {answer.value for answer in answers[1:]} == {None}
    assert {answer.failure for answer in answers[1:]} == {"ended its parser"}


def test_manifests_made_to_be_slow() -> None:
    go = language_of("a.go")
    assert go is not None
    for line in ("\n", " ", "module ", "module \n", 'module "'):
        module_of_source(go, "a.go", "shop", {"go.mod": (line * (LONG // len(line))).encode()})


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(b"a = " + b"[" * 5000, id="deep"),
        pytest.param(b"a = " + b"9" * 5000, id="digits"),
        pytest.param(b".".join([b"a"] * 100_000) + b" = 1", id="dotted"),
        pytest.param(b"package = [1]", id="list"),
        pytest.param(b"package = 1", id="number"),
        pytest.param(b"\xff\xfe", id="not UTF-8"),
        pytest.param(b"# x\n" * 100_000 + b"[package]\nname = 'x'", id="large"),
    ],
)
def test_a_manifest_that_is_none_names_no_crate(manifest: bytes) -> None:
    language = language_of("a.rs")
    assert language is not None
    assert module_of_source(language, "src/a.rs", "", {"Cargo.toml": manifest}) == "a"
    named = b"[package]\nname = 'my-crate'\n"
    assert module_of_source(language, "src/a.rs", "", {"Cargo.toml": named}) == "my_crate::a"


@pytest.mark.parametrize(
    ("path", "module"),
    [("src.rs", ""), ("lib.rs", ""), ("//etc/a.rs", "etc::a"), ("/a.rs", "a"), ("a/../b.rs", "a::..::b")],
)
def test_paths_that_no_one_would_choose(path: str, module: str) -> None:
    language = language_of(path)
    assert language is not None
    assert module_of_source(language, path, "", {}) == module


@pytest.mark.slow
@pytest.mark.parametrize("parse", [True, False])
def test_long_names_around_many_others_are_not_kept_with_each(parse: bool) -> None:
    """The names alone would have been 2 GB: each of 20,000 with the 100,000 characters around it."""
    body = "".join(f"  def f{number}(): pass\n" for number in range(20_000))
    source = f"class {'A' * 100_000}:\n{body}".encode()
    tracemalloc.start()
    compared = compare_python(None, source, parse=parse)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert max(map(len, compared.modified)) == MAX_NAME
    assert peak < 500 * 1024**2


def test_a_tag_with_a_line_end_of_unicode_in_its_name(tmp_path: Path) -> None:
    work = Work(tmp_path / "repo")
    sha = work.commit()
    for name in ("v1", "v\u20282", "v\x853"):
        work.git("tag", name)
    assert {tag.name for tag in Repository(work.path).tags("v*")} == {"v1", "v\u20282", "v\x853"}
    assert {tag.sha for tag in Repository(work.path).tags("v*")} == {sha}


@pytest.mark.parametrize("time", ["", "nonsense", "99999999999999999999"])
def test_a_commit_that_no_git_made(tmp_path: Path, time: str) -> None:
    work = Work(tmp_path / "repo")
    work.commit(files={"a.py": "x = 1\n"})
    tree = work.git("rev-parse", "HEAD^{tree}")
    raw = f"tree {tree}\nauthor A <a> {time}\ncommitter A <a> {time}\n\nTitle\n\nBody\n"
    command = ["git", "-C", str(work.path), "hash-object", "-t", "commit", "-w", "--stdin", "--literally"]
    sha = subprocess.run(command, input=raw.encode(), capture_output=True, check=True).stdout.decode().strip()
    assert Repository(work.path).commit(sha).title == "Title"


def test_commits_that_break_off() -> None:
    assert parse_commit(SHA, []).title == ""
    assert parse_commit(SHA, ["p q", "Ada <a>", "-5", "Title"]).parent == "p"
    assert parse_commit(SHA, ["", "", "9" * 5000]).time == 0.0
    assert parse_commit(SHA, ["", "", "²", ""]).time == 0.0


def test_tags_that_break_off() -> None:
    assert parse_tags("") == []
    assert parse_tags("1\0commit\0" + SHA) == []
    assert parse_tags(f"x\0commit\0{SHA}\0\0\0refs/tags/v1\n") == []
    assert [tag.name for tag in parse_tags(f"7\0commit\0{SHA}\0\0\0refs/tags/v1\n")] == ["v1"]


def test_lists_of_files_that_break_off() -> None:
    whole = f":100644 100644 {SHA} {SHA} R090\0a\0b\0:100644 000000 {SHA} {'0' * 40} D\0c\0"
    assert parse_files(whole) == [FileChange("a", "b", SHA, SHA), FileChange("c", "", SHA, "")]
    for end in range(len(whole)):
        assert len(parse_files(whole[:end])) <= 2
    assert parse_files(":\0:1 2\0: : : : \0") == []


def test_objects_that_go_between_two_looks() -> None:
    assert list(parse_sizes(b"x blob 3\ny missing\nz tree 9\n")) == [3, None, None, None]
    assert list(parse_contents(b"x blob 3\nabc\ny missing\nz blob 0\n\n")) == [b"abc", None, b""]
    assert list(parse_contents(b"x blob " + b"9" * 5000 + b"\n")) == [None]


def test_a_hunk_of_thousands_of_digits_is_none() -> None:
    text = f"diff --git a/x b/x\nindex {SHA}..{SHA}\n@@ -{'1' * 5000} +1 @@\n+x\n".encode()
    assert [patch.hunks for patch in parse_patch(text)] == [[]]
