"""Git repository of the shop: the first commit from the package beside this module, then its history."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from loadgen.target.history import Edit, ShopCommit, read_history
from pipeline.model.clock import to_iso
from pipeline.model.errors import ConfigError

PACKAGE = Path(__file__).with_name("shop")
_GIT_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit of the history with the id that git gave it."""

    sha: str
    commit: ShopCommit

    @property
    def short(self) -> str:
        """Return the first characters of the id, as people read it."""
        return self.sha[:9]


def make_repository(folder: Path, now: float) -> list[Revision]:
    """Create a git work tree in ``folder`` (made, empty) with the history, and return its revisions in order.

    The commits' ages count back from ``now`` (epoch seconds). The machine's git configuration,
    hooks included, plays no part.

    Raises:
        ConfigError: git is missing or fails.
        ValueError: an edit of the history does not fit the files.
    """
    folder.mkdir(parents=True)
    shutil.copytree(PACKAGE, folder / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    git(folder, "init", "--quiet", "--initial-branch=main")
    revisions = []
    for commit in read_history():
        for edit in commit.edits:
            apply_edit(folder, edit)
        git(folder, "add", "--all")
        message = f"{commit.title}\n\n{commit.body}".strip()
        git(folder, "commit", "--quiet", f"--message={message}", environ=_identity(commit, now))
        revisions.append(Revision(git(folder, "rev-parse", "HEAD"), commit))
    return revisions


def check_out(folder: Path, sha: str) -> None:
    """Put the files of a revision into the work tree."""
    git(folder, "checkout", "--quiet", "--detach", sha)


def apply_edit(folder: Path, edit: Edit) -> None:
    """Change or create one file.

    Raises:
        ValueError: the text to replace does not occur exactly once, or the file to create exists.
    """
    path = folder / edit.path
    if not edit.old:
        if path.exists():
            raise ValueError(f"{edit.path} exists already")
        path.write_text(edit.new, encoding="utf-8")
        return
    text = path.read_text(encoding="utf-8")
    if text.count(edit.old) != 1:
        raise ValueError(f"{edit.path}: {text.count(edit.old)} places for {edit.old[:60]!r}")
    path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")


def git(folder: Path, *arguments: str, environ: Mapping[str, str] | None = None) -> str:
    """Run git in ``folder`` and return what it prints, stripped.

    Raises:
        ConfigError: git is missing, fails or hangs.
    """
    # GIT_* of an outer git (a hook that runs the tests) would point this git at another repository.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    clean |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **(environ or {})}
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            env=clean,
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise ConfigError("git is needed to make the shop's repository, and it is not installed") from None
    except subprocess.TimeoutExpired:
        raise ConfigError(f"git {arguments[0]} took longer than {_GIT_TIMEOUT_S:g} s") from None
    if done.returncode != 0:
        raise ConfigError(f"git {arguments[0]}: {done.stderr.strip() or done.returncode}")
    return done.stdout.strip()


def _identity(commit: ShopCommit, now: float) -> dict[str, str]:
    first = commit.author.split()[0].lower()
    who = {"NAME": commit.author, "EMAIL": f"{first}@shop.example", "DATE": to_iso(now - commit.age_h * 3600)}
    return {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
