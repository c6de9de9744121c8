"""Deployed commits of a git repository as change messages, with the subroutines that each one modified."""

from agents.source.changes.diff import parse_diff
from agents.source.changes.git import Commit, Repository
from agents.source.changes.history import Described, Versions, change_message, describe_commit, read_change
from agents.source.changes.watch import Branch, Deployment, PublishedState, Tags, Watch, follow
from agents.source.changes.work_tree import DIFF, WorkTree

__all__ = [
    "DIFF",
    "Branch",
    "Commit",
    "Deployment",
    "Described",
    "Repository",
    "PublishedState",
    "Tags",
    "Versions",
    "Watch",
    "WorkTree",
    "change_message",
    "describe_commit",
    "follow",
    "parse_diff",
    "read_change",
]
