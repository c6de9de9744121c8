"""Deployed commits of a git repository as change messages, with the subroutines that each one modified."""

from agents.changes.diff import parse_diff
from agents.changes.git import Commit, Repository
from agents.changes.history import Described, Versions, change_message, describe_commit, read_change
from agents.changes.watch import Branch, Deployment, State, Tags, Watch, follow
from agents.changes.work_tree import DIFF, WorkTree

__all__ = [
    "DIFF",
    "Branch",
    "Commit",
    "Deployment",
    "Described",
    "Repository",
    "State",
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
