"""Following a branch or tags: what is published, once, and what is remembered of it."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from agents.source.changes import watch as watching
from agents.source.changes.git import GitError, Repository
from agents.source.changes.watch import Branch, Deployment, PublishedState, Tags, Watch, follow
from pipeline.cli import run
from pipeline.messages.inputs import change_from_json
from pipeline.model.errors import BrokerUnavailable, ConfigError
from tests.support.repositories import Work


@pytest.fixture
def work(tmp_path: Path) -> Work:
    work = Work(tmp_path / "repo")
    work.commit("one", {"a.py": "x = 1\n"})
    return work


class Steps:
    """Follows with something done between looks, instead of time that passes."""

    def __init__(self, watch: Watch, state: PublishedState, steps: Sequence[Callable[[], object]]) -> None:
        self.published: list[str] = []
        self.failures = 0
        self._steps = iter(steps)
        self._stop = threading.Event()
        self._stop.wait = self._wait  # type: ignore[method-assign]
        follow(watch, state, self._publish, interval_s=1.0, stop=self._stop)

    def _publish(self, deployments: Sequence[Deployment]) -> None:
        if self.failures:
            self.failures -= 1
            raise BrokerUnavailable("broker: cannot be reached")
        self.published += [deployment.commit.title for deployment in deployments]

    def _wait(self, timeout: float | None = None) -> bool:
        step = next(self._steps, None)
        if step is None:
            return True
        if step() == "fail":
            self.failures = 1
        return False


def nothing() -> None:
    pass


def branch(work: Work, name: str = "main") -> Branch:
    return Branch(Repository(work.path), name)


def memory() -> PublishedState:
    return PublishedState(None, "branch main", "shop")


def test_new_commits_of_a_branch_are_published_once(work: Work) -> None:
    steps = [
        nothing,
        lambda: work.commit("two"),
        nothing,
        lambda: [work.commit("three"), work.commit("four")],
    ]
    assert Steps(branch(work), memory(), steps).published == ["two", "three", "four"]


def test_a_failure_to_publish_is_made_up_for(work: Work, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> str:
        work.commit("two")
        return "fail"

    steps = [fail, lambda: work.commit("three")]
    assert Steps(branch(work), memory(), steps).published == ["two", "three"]
    assert "cannot be reached; trying again in 1 s" in caplog.text


def test_a_restart_goes_on_where_it_was(work: Work, tmp_path: Path) -> None:
    def state() -> PublishedState:
        return PublishedState(tmp_path / "state.json", "branch main", "shop")

    assert Steps(branch(work), state(), [lambda: work.commit("two")]).published == ["two"]
    work.commit("three")
    assert Steps(branch(work), state(), [nothing]).published == ["three"]
    assert Steps(branch(work), state(), [nothing]).published == []
    assert list(tmp_path.glob("state.json*")) == [tmp_path / "state.json"]


def test_a_branch_that_was_rewritten(work: Work) -> None:
    def rewrite() -> None:
        work.git("reset", "--quiet", "--hard", "HEAD~1")
        work.commit("other")

    steps = [lambda: work.commit("two"), rewrite]
    assert Steps(branch(work), memory(), steps).published == ["two", "other"]


def test_a_tip_that_is_gone_for_good(work: Work, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    state = PublishedState(tmp_path / "state.json", "branch main", "shop")
    state.write(frozenset({"1" * 40}))
    work.commit("two")
    assert Steps(branch(work), state, []).published == ["two"]
    assert "is gone; only the tip" in caplog.text


def test_a_long_history_is_cut(
    work: Work, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watching, "MAX_COMMITS", 2)
    steps = [lambda: [work.commit(str(number)) for number in range(4)]]
    assert Steps(branch(work), memory(), steps).published == ["2", "3"]
    assert "more than 2 commits" in caplog.text


def test_a_branch_that_goes_away_and_comes_back(work: Work, caplog: pytest.LogCaptureFixture) -> None:
    work.git("branch", "live")
    steps = [
        lambda: work.git("branch", "--delete", "live"),
        lambda: [work.commit("two"), work.git("branch", "live")],
    ]
    with caplog.at_level(logging.WARNING):
        assert Steps(branch(work, "live"), memory(), steps).published == ["two"]
    assert "no branch 'live'; trying again" in caplog.text


def test_a_branch_of_a_remote(work: Work) -> None:
    sha = work.git("rev-parse", "HEAD")
    work.git("update-ref", "refs/remotes/origin/live", sha)
    assert Repository(work.path).branch_tip("origin/live") == sha
    with pytest.raises(GitError, match="no branch 'live'"):
        Repository(work.path).branch_tip("live")


def test_tags_bring_the_commits_since_the_tag_before(work: Work) -> None:
    work.git("tag", "v1")
    work.commit("two")
    work.commit("three")

    def release() -> None:
        work.git("tag", "--annotate", "--message=x", "v2")
        work.git("tag", "other")

    steps = [release, nothing, lambda: work.git("tag", "v1-again", "v1")]
    assert Steps(Tags(Repository(work.path), "v*"), memory(), steps).published == ["two", "three"]


def test_tags_that_come_after_none(work: Work) -> None:
    steps = [nothing, lambda: work.git("tag", "v1")]
    assert Steps(Tags(Repository(work.path), "v*"), memory(), steps).published == ["one"]


def test_tags_of_other_things_are_left_out(work: Work) -> None:
    work.git("tag", "blob", work.git("rev-parse", "HEAD:a.py"))
    work.git("tag", "--annotate", "--message=x", "nested", "HEAD")
    work.git("tag", "plain")
    assert {tag.name for tag in Repository(work.path).tags("*")} == {"nested", "plain"}
    assert len({tag.sha for tag in Repository(work.path).tags("*")}) == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"", "not a state file", id="empty"),
        pytest.param(b"[1]", "not a state file", id="list"),
        pytest.param(b'{"published": 3}', "not a state file", id="number"),
        pytest.param(b'{"published": [["a"]]}', "not a state file", id="a list for a commit"),
        pytest.param(
            b'{"published": [], "watch": ' + b"[" * 900 + b"]" * 900 + b"}",
            "not a state file",
            id="nested too deeply to be shown",
        ),
        pytest.param(b'{"published": [], "service": "x", "watch": "y"}', "belongs to", id="another's"),
    ],
)
def test_a_wrong_state_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=words):
        PublishedState(path, "branch main", "shop").read()


def test_a_state_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="state"):
        PublishedState(tmp_path / "nowhere" / "state.json", "branch main", "shop").write(frozenset())


def shown(work: Work, arguments: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    command = ["changes", "--service", "shop", "--repo", str(work.path), "--dry-run", "--json"]
    assert run([*command, *arguments.split()]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_command_shows_changes_as_json(work: Work, capsys: pytest.CaptureFixture[str]) -> None:
    work.git("tag", "v1")
    work.commit("two", {"a.py": "x = (\n", "b.py": "def f(): pass\n"})
    work.commit("three")
    work.git("tag", "v2")
    (change,) = shown(work, "--rev HEAD~1 --time 1700000000", capsys)
    assert change["subroutines"] == ["a.<module>", "b.f"]
    assert change["left_out"] == [
        "the syntax of 'a.py', not valid Python or too large: compared by indentation"
    ]
    assert change_from_json(change).title == "two"
    assert [line["title"] for line in shown(work, "--tags v*", capsys)] == ["two", "three"]
    assert [line["title"] for line in shown(work, "--branch main", capsys)] == ["three"]
    assert [line["title"] for line in shown(work, "--range v1..v2", capsys)] == ["two", "three"]


@pytest.mark.parametrize("arguments", ["--tags x*", "--branch nothing", "--branch nothing --follow 5s"])
def test_nothing_to_watch(arguments: str, work: Work, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["changes", "--service", "s", "--repo", str(work.path), "--dry-run", *arguments.split()]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--time 2099-01-01", "--time: is in the future"),
        ("--source-root nowhere", "--source-root: 'nowhere' is no folder"),
        ("--source-root src --source-root shop.py", "--source-root: 'shop.py' is no folder"),
        ("--source-root nowhere --branch main --follow 5s", "--source-root: 'nowhere' is no folder"),
        ("--source-root nowhere --tags v*", "--source-root: 'nowhere' is no folder"),
    ],
)
def test_what_would_be_of_no_use_is_refused(
    arguments: str, words: str, work: Work, capsys: pytest.CaptureFixture[str]
) -> None:
    work.commit("One", {"src/shop.py": "x = 1\n", "shop.py": "x = 1\n"})
    work.git("tag", "v1")
    command = ["changes", "--service", "s", "--repo", str(work.path), "--dry-run"]
    assert run([*command, *arguments.split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("root", ["src", "./src/", "/src", ".", "src/deep"])
def test_a_source_root_is_a_folder_from_the_top(
    root: str, work: Work, capsys: pytest.CaptureFixture[str]
) -> None:
    work.commit("One", {"src/deep/shop.py": "x = 1\n"})
    command = ["changes", "--service", "s", "--repo", str(work.path / "src"), "--dry-run", "--source-root"]
    assert run([*command, root]) == 0
    assert "1 subroutines" in capsys.readouterr().out
