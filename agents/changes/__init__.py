"""Deployed commits of a git repository as change messages, with the subroutines that each one modified."""

from agents.changes.git import Commit, Repository
from agents.changes.history import Described, change_message, describe_commit, read_change
from agents.changes.watch import Branch, Deployment, State, Tags, Watch, follow

__all__ = [
    "Branch",
    "Commit",
    "Deployment",
    "Described",
    "Repository",
    "State",
    "Tags",
    "Watch",
    "change_message",
    "describe_commit",
    "follow",
    "read_change",
]
