"""The ``git`` program, bounded in what it prints and how long it takes: a repository may be hostile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.config import environment_of_others
from pipeline.errors import ConfigError
from pipeline.processes import Output, run_bounded

_OPTIONS = (
    "--no-pager",
    "--no-replace-objects",
    "--literal-pathspecs",
    *("-c", "i18n.logOutputEncoding=UTF-8"),
    *("-c", "log.showSignature=false"),  # would run gpg, or what the repository names instead
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
)
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # a partial clone may not fetch: its transport is a program
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}


class GitError(ConfigError):
    """The repository or revision is wrong; the text is git's own."""


def run_git(
    repository: Path, arguments: Sequence[str], *, stdin: bytes, max_bytes: int, timeout_s: float
) -> Output:
    """Run git in a folder, and end it when it prints too much or takes too long.

    Raises:
        GitError: git is not installed.
    """
    command = ["git", "-C", str(repository.absolute()), *_OPTIONS, *arguments]
    try:
        return run_bounded(
            command, stdin=stdin, max_bytes=max_bytes, timeout_s=timeout_s, environment=_environment()
        )
    except FileNotFoundError:
        raise GitError("git is not installed") from None


def git_failure(output: Output) -> str:
    """Return git's own reason why it failed; empty if it did not, or was ended."""
    if output.cut or not output.code:
        return ""
    lines = output.errors.split("\n")
    complaint = next((line for line in lines if not line.startswith("warning: ")), lines[0])
    first = complaint.removeprefix("fatal: ").removeprefix("error: ")
    if "dubious ownership" in first:
        return f"{first}; if it is trusted: git config --global --add safe.directory FOLDER"
    return first or "git failed"


def _environment() -> dict[str, str]:
    """Return the caller's environment without git's variables: a hook's would name another repository."""
    clean = {name: value for name, value in environment_of_others().items() if not name.startswith("GIT_")}
    return clean | _ENVIRONMENT
