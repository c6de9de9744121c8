"""Unified diffs of many writers, and the other version of a file by its hunks."""

from __future__ import annotations

import pytest

from agents.source.changes.diff import FileDiff, other_version, parse_diff, patch_of
from pipeline.model.errors import ConfigError

OLD = b"one\ntwo\nthree\nfour\nfive\nsix\n"
NEW = b"zero\none\ntwo\nTHREE\nfour\nfive\n"
HUNKS = """\
@@ -1,6 +1,6 @@
+zero
 one
 two
-three
+THREE
 four
 five
-six
"""


def parse(text: str) -> FileDiff:
    (found,) = parse_diff(text.encode())
    return found


@pytest.mark.parametrize(
    ("head", "paths"),
    [
        ("diff --git a/x.py b/x.py\nindex 1..2 100644\n--- a/x.py\n+++ b/x.py\n", ("x.py", "x.py")),
        ("diff --git i/x.py w/x.py\nindex 1..2 100644\n--- i/x.py\n+++ w/x.py\n", ("x.py", "x.py")),
        ("diff --git a/x.py a/x.py\nindex 1..2 100644\n--- a/x.py\n+++ a/x.py\n", ("a/x.py", "a/x.py")),
        ('diff --git "a/\\303\\244 b.py" "b/\\303\\244 b.py"\n', ("ä b.py", "ä b.py")),
        ("diff --git a/x y.py b/x y.py\n--- a/x y.py\t\n+++ b/x y.py\t\n", ("x y.py", "x y.py")),
        ("diff --git a/x.py b/y/z.py\nrename from x.py\nrename to y/z.py\n", ("x.py", "y/z.py")),
        ("diff --git a/x.py b/x.py\nnew file mode 100644\n--- /dev/null\n+++ b/x.py\n", ("", "x.py")),
        ("diff --git a/x.py b/x.py\ndeleted file mode 100644\n--- a/x.py\n+++ /dev/null\n", ("x.py", "")),
        ("--- a/x.py\t2026-11-26\n+++ b/x.py\t2026-11-27\n", ("x.py", "x.py")),
        ("diff -ru old/x.py new/x.py\n--- old/x.py\t1\n+++ new/x.py\t2\n", ("x.py", "x.py")),
        ("--- x.py\n+++ x.py\n", ("x.py", "x.py")),
        ("--- /dev/null\n+++ b/x.py\n", ("", "x.py")),
        ("From: Ada\nSubject: [PATCH] x\n---\n x | 2 +-\n\ndiff --git a/x b/x\n", ("x", "x")),
    ],
)
def test_paths_as_programs_write_them(head: str, paths: tuple[str, str]) -> None:
    found = parse(head + HUNKS + "-- \n2.39\n")
    assert (found.old_path, found.new_path) == paths
    assert len(found.hunks) == 1


@pytest.mark.parametrize("end", ["", "\\ No newline at end of file\n"])
def test_each_version_gives_the_other(end: str) -> None:
    hunks = parse("--- a/x\n+++ b/x\n" + HUNKS + end).hunks
    assert other_version(NEW, hunks, b"+") == OLD
    assert other_version(OLD, hunks, b"-") == NEW
    assert other_version(OLD.replace(b"\n", b"\r\n"), hunks, b"-") == NEW
    assert other_version(OLD, hunks, b"+") is None
    assert other_version(b"other\n" + NEW, hunks, b"+") is None
    assert other_version(b"", hunks, b"+") is None


def test_changed_lines_have_the_numbers_of_their_versions() -> None:
    found = patch_of(parse("--- a/x\n+++ b/x\n" + HUNKS), ("1", "2"))
    assert found.touched == ([3, 6], [1, 4])
    assert [(len(hunk.removed), len(hunk.added)) for hunk in found.hunks] == [(0, 1), (1, 1), (1, 0)]
    without = "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+zero\n@@ -3 +4 @@\n-three\n+THREE\n@@ -6 +6,0 @@\n-six\n"
    diff = parse(without)
    assert patch_of(diff, ("1", "2")).touched == ([3, 6], [1, 4])
    assert other_version(NEW, diff.hunks, b"+") == OLD
    assert other_version(OLD, diff.hunks, b"-") == NEW


def test_links_and_binary_files_are_known() -> None:
    head = "diff --git a/x b/x\n"
    assert not parse(head + "new file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+y\n").regular
    assert not parse(head + "index 1..2 160000\n").regular
    assert parse(head + "old mode 100644\nnew mode 100755\n").regular
    assert parse(head + "index 1..2 100644\nBinary files a/x and b/x differ\n").binary


def test_a_line_of_a_file_is_none_of_the_diff() -> None:
    text = "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n--- a/y\n+++ b/y\n+diff --git a/z b/z\n \n"
    assert parse(text).hunks[0].side(b"-") == [b"-- a/y", b""]
    lost = "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n-a\n+b\n+c\n\n"
    assert parse(lost).hunks[0].side(b"+") == [b"b", b"c", b""]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "holds no diff"),
        ("def price():\n    pass\n", "holds no diff"),
        ("diff --cc x.py\nindex 1,2..3\n", "combined diff of a merge"),
        ("--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n one\n-two", "breaks off in a hunk of 'x'"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\nzero\n", "breaks off in a hunk of 'x'"),
        ("--- a/x\n+++ b/x\n@@ -1,0 +1 @@\n-a\n-b\n+c\n", "other lines than it says"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n" * 2, "has 'x' twice"),
    ],
)
def test_what_is_no_diff_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parse_diff(text.encode())
