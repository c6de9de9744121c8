"""The AutoLabeler by rules (FBDetect §5.5.2): classes of people's texts and actions on an event.

The paper asks a language model for the status, and settles open cases by people's actions. Here phrases are
looked for, the last comment that has one counts, and the evidence is always shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline.model import VerdictKind

Status = Literal["cost shift", "duplicate", "false positive", "fixed", "will not fix", "resolved", "review"]
"""The paper's statuses. What is expected will not be fixed; ``review`` needs somebody to look into it."""

Basis = Literal["verdict", "comment", "follow-up change", "resolution", "model", "nothing"]


@dataclass(frozen=True, slots=True)
class Answers:
    """People's texts and actions on an event."""

    comments: tuple[str, ...] = ()  # oldest first
    verdict: VerdictKind | None = None  # the event's state
    repaired_by: tuple[str, ...] = ()  # changes to its subroutines, deployed just before it went
    resolved: bool = False


@dataclass(frozen=True, slots=True)
class Label:
    """A class and its evidence."""

    status: Status
    basis: Basis
    evidence: str = ""  # the words, or the change


_OF_VERDICTS: Mapping[str, Status] = {
    "false": "false positive",
    "cost-shift": "cost shift",
    "expected": "will not fix",
    "fixed": "fixed",
    "duplicate": "duplicate",
}

_PHRASES: Mapping[Status, Sequence[str]] = {
    "duplicate": (
        r"duplicate",
        r"\bdupe?\b",
        r"same (issue|regression|root cause|alert|event) as",
        r"already (tracked|reported|filed)",
        r"see (the )?other (event|alert|ticket)",
        r"merg(ed|ing) (this )?into",
    ),
    "cost shift": (
        r"cost[ -]?shift",
        r"(cost|cpu|time|work|samples?)( has| just| only| simply)? (moved|shifted|migrated)",
        r"moved (from|to|into|out of|under)",
        r"(just|only|simply|pure|a) (a )?(refactor\w*|rename\w*)",
        r"was (inlined|renamed|extracted|split)",
        r"attributed to",
        r"(total|overall|sum|parent|caller)[\w ]* (is |stays |stayed |remains )?(flat|unchanged|the same)",
        r"same (cost|work) under (a|another)",
    ),
    "false positive": (
        r"false (positive|alarm)",
        r"not a (real )?regression",
        r"no(thing)? (real )?regression",
        r"(just|only|pure) noise",
        r"\bnoisy?\b",
        r"\bflak[ey]|\bspike|\bblip\b",
        r"load test",
        r"(measurement|sampling) (error|artefact|artifact)",
        r"bad data",
        r"nothing (got|is) slower",
        r"can(no|')t (reproduce|see (any|it))|cannot reproduce",
        r"seasonal|traffic mix",
    ),
    "will not fix": (
        r"(won'?t|will not) (be )?fix|wontfix|closed as (won'?t do|declined)",
        r"expected|planned|by design|intend(ed|tional)",
        r"accept(ed|able|ing)?\b",
        r"worth (it|the)|not worth",
        r"known cost|price (of|we)|trade-?off",
        r"new feature",
        r"live with|working as",
        r"budgeted|signed off|approved",
    ),
    "fixed": (
        r"\bfix(ed|es)?\b|hotfix",
        r"revert(ed|ing)?\b",
        r"roll(ed|ing)? (it )?back|rollback|backed out",
        r"patch(ed)?\b",
        r"optimi[sz]ed|mitigated|repaired|landed",
        r"deployed the (fix|change)",
        r"(change|diff|mr|pr) (is )?merged",
        r"cached it|removed the",
    ),
}
"""Words of each class; if one comment has several, the first class counts."""

_RULES = {status: re.compile("|".join(phrases), re.IGNORECASE) for status, phrases in _PHRASES.items()}

_DENIED = re.compile(
    r"(\bnot?|n't|never|\bno|without|hardly|unlikely|instead of|rather than)"
    r"( \w+){0,2} (a |an |the |to be )?$",
    re.IGNORECASE,
)
"""Words before a phrase that negate it: the phrase is no evidence then."""

_OPEN = re.compile(
    r"\b(should|could|can|will|might|may|need(s)? to|going to|plan(ning)? to|trying to|want to|please|if"
    r"|whether|maybe|perhaps|working on|waiting for|still|unless|until|todo)\b[^.;]{0,40}$",
    re.IGNORECASE,
)
"""Words before a phrase that leave it open: the phrase is no statement then."""


def label(answers: Answers) -> Label:
    """Return the class of an event: by its verdict, else its comments, else people's actions."""
    if answers.verdict and answers.verdict in _OF_VERDICTS:
        return Label(_OF_VERDICTS[answers.verdict], "verdict", answers.verdict)
    return label_comments(answers.comments) or label_deeds(answers)


def label_comments(comments: Sequence[str]) -> Label | None:
    """Return the class of the last comment with a phrase, None if no comment has one."""
    for comment in reversed(comments):
        for status, rule in _RULES.items():
            for match in rule.finditer(comment):
                if not _is_withdrawn(comment, match, status):
                    return Label(status, "comment", comment)
    return None


def label_deeds(answers: Answers) -> Label:
    """Return the class by people's actions: the paper's second step."""
    if answers.repaired_by:
        return Label("fixed", "follow-up change", ", ".join(answers.repaired_by))
    if answers.resolved:
        return Label("resolved", "resolution")
    return Label("review", "nothing")


def _is_withdrawn(comment: str, match: re.Match[str], status: Status) -> bool:
    before = re.split(r"[.;:,]", comment[: match.start()])[-1]
    if comment.rstrip().endswith("?") or (_OPEN.search(before) and status != "will not fix"):
        return True
    return bool(_DENIED.search(before)) and not re.match(r"(?i)not|no|can|nothing|won|will", match.group())
