"""The ``git`` program, bounded in what it prints and how long it takes: a repository may be hostile."""

from __future__ import annotations

import math
import resource
from collections.abc import Mapping, Sequence
from pathlib import Path

from pipeline.model.errors import ConfigError
from pipeline.processes import Output, run_bounded
from pipeline.settings.config import plain_environment

_OPTIONS = (
    "--no-pager",
    "--no-replace-objects",
    "--literal-pathspecs",
    *("-c", "i18n.logOutputEncoding=UTF-8"),
    *("-c", "log.showSignature=false"),  # would run gpg, or what the repository names instead
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.packedGitLimit=2g"),  # packs are mapped into memory, which is bounded
)
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # a partial clone may not fetch: its transport is a program
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}


MEMORY_BYTES = 8 * 1024**3
"""Address space of git, in bytes: an object may unpack to far more than its size on disk."""

WRITTEN_BYTES = 1024**2
"""Largest file that git may write: only its error messages go into a file."""


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
            command,
            stdin=stdin,
            max_bytes=max_bytes,
            timeout_s=timeout_s,
            environment=_environment(),
            limits=_limits(timeout_s),
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


def _limits(timeout_s: float) -> Mapping[int, int]:
    return {
        resource.RLIMIT_AS: MEMORY_BYTES,
        resource.RLIMIT_CPU: math.ceil(timeout_s) + 1,
        resource.RLIMIT_FSIZE: WRITTEN_BYTES,
        resource.RLIMIT_CORE: 0,
    }


def _environment() -> dict[str, str]:
    """Return git's environment: none of the caller's secrets, and none of git's variables that a hook has."""
    return plain_environment() | _ENVIRONMENT
