"""Git repository to commit to, for tests of its readers."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from agents.source.changes.git import Repository
from agents.source.changes.history import Described, describe_commit, read_change
from pipeline.model import Change

NOTHING: Mapping[str, None] = {}


class Work:
    """A repository to commit to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        identity = (
            "-c",
            "user.name=Ada Lovelace",
            "-c",
            "user.email=ada@example.org",
            "-c",
            "commit.gpgSign=false",
        )
        command = ["git", "-C", str(self.path), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, message: str = "Change", files: Mapping[str, str | bytes | None] = NOTHING) -> str:
        """Write files (None deletes one) and commit; return the id."""
        for name, content in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                path.unlink()
            else:
                path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")

    def edit(self, path: str, old: str, before: str, after: str) -> str:
        """Commit a file, and again with one text replaced; return the id of the second commit."""
        assert old.count(before) == 1
        self.commit("Old", {path: old})
        return self.commit("New", {path: old.replace(before, after)})

    def change(self, revision: str = "HEAD", *roots: str) -> Change:
        repository = Repository(self.path)
        commit = repository.commit(revision)
        return read_change(repository, commit, service="shop", time=1_700_000_000.0, source_roots=roots)

    def described(self, revision: str = "HEAD") -> Described:
        repository = Repository(self.path)
        commit = repository.commit(revision)
        return describe_commit(repository, commit, service="shop", time=1e9)
