"""Work trees of a repository, one for each commit that is built; removed at the end."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from agents.experiments.bisection.shell import Finished, git_environment, run_shell
from agents.source.changes.git import GitError

_GIT_TIMEOUT_S = 600.0


class Workbench:
    """Checks commits out beside a repository, whose own work tree is not touched, and runs commands there."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        self._folder = Path()
        self._trees: dict[str, Path] = {}

    def __enter__(self) -> Self:
        """Make the folder of all work trees."""
        self._folder = Path(tempfile.mkdtemp(prefix="smidgen-bisect-"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove all work trees, and git's records of them."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._git("worktree", "prune")

    def check_out(self, sha: str) -> Path:
        """Return a new work tree with a commit.

        Raises:
            GitError: git's reason.
        """
        tree = self._folder / sha
        done = self._git("worktree", "add", "--quiet", "--detach", "--force", str(tree), sha)
        if done.returncode:
            raise GitError(f"git worktree: {done.stderr.strip() or f'exit code {done.returncode}'}")
        self._trees[sha] = tree
        return tree

    def run(self, sha: str, command: str, timeout_s: float) -> Finished:
        """Run a command in the work tree of a commit that is checked out."""
        return run_shell(command, self._trees[sha], timeout_s)

    def folder(self, sha: str) -> Path:
        """Return the work tree of a commit that is checked out."""
        return self._trees[sha]

    def discard(self, sha: str) -> None:
        """Remove the work tree of a commit that cannot be built."""
        shutil.rmtree(self._trees.pop(sha), ignore_errors=True)

    def _git(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        hooks = ("-c", "core.hooksPath=/dev/null")
        return subprocess.run(
            ["git", "-C", str(self._repository), *hooks, *arguments],
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            env=git_environment(),
            timeout=_GIT_TIMEOUT_S,
        )
