"""Counts of what a tally of requests left out, or did not count as what it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from agents.logs.duration import NoDuration
from agents.logs.request_type import CUT, MAX_TYPE, MOST_CHILDREN, MOST_DEPTH, MOST_PARENTS, OTHER

MOST_NAMED = 5
"""Most unreadable lines and folded paths that are named."""

ZERO_BUCKET = -(2**31)
"""Bucket of requests that took no time; those by NoDuration under it are of requests without a duration."""

_MAX_EXAMPLE = 40
_MAX_LINE = 10_000


@dataclass(slots=True)
class Omissions:
    """What was left out; requests of folded names and of durations are those of closed periods."""

    late: int = 0  # requests that came after their period was closed
    remarks: Sequence[str] = ()  # on what a line has beyond its format
    parts: int = 0  # lines of requests that other lines count
    others: int = 0  # requests without a type of their own
    invalid: int = 0  # lines that could not be read
    invalid_line: str = ""  # the first one, its beginning
    invalid_lines: list[int] = field(default_factory=list)  # numbers of the first ones
    wrong_time: str = ""  # why the first time that could not be read could not
    zone: str = ""  # time zone that was assumed of times without an offset; empty if all have one
    untimed: Counter[NoDuration] = field(default_factory=Counter)  # requests by why they have no duration
    timed: int = 0  # requests with a duration
    examples: dict[NoDuration, str] = field(default_factory=dict)
    cut: int = 0  # requests of types that end with CUT
    folded: int = 0  # requests of types with a name that was folded by its number
    folds: Counter[str] = field(default_factory=Counter)  # path whose names were folded → requests

    def refuse(self, number: int, line: str) -> None:
        """Count a line that could not be read."""
        self.invalid += 1
        self.invalid_line = self.invalid_line or line[:_MAX_LINE]
        if len(self.invalid_lines) < MOST_NAMED:
            self.invalid_lines.append(number)

    def note(self, reason: NoDuration, text: str) -> None:
        """Remember the first text of a kind that is no duration."""
        self.examples.setdefault(reason, text[:_MAX_EXAMPLE])

    def count(self, type_: str, folded: Collection[str], requests: int, durations: Mapping[int, int]) -> None:
        """Count what is left out of the requests of a type in a period.

        Args:
            type_: Of the requests.
            folded: Paths whose names were folded in the type.
            requests: Number of requests.
            durations: Requests by bucket; under ZERO_BUCKET by NoDuration.
        """
        self.others += requests if type_ == OTHER else 0
        self.cut += requests if type_.endswith(f"/{CUT}") else 0
        self.folded += requests if folded else 0
        for path in folded:
            self.folds[path] += requests
        for bucket, many in durations.items():
            requests -= many
            if bucket < ZERO_BUCKET:
                self.untimed[NoDuration(ZERO_BUCKET - bucket)] += many
            else:
                self.timed += many
        self.untimed[NoDuration.ABSENT] += requests

    def counts(self) -> dict[str, int]:
        """Return the number of requests, or lines, by what is amiss with them; a request may have several."""
        return {
            "other": self.others,
            "folded": self.folded,
            "cut": self.cut,
            "late": self.late,
            "part": self.parts,
            "unreadable": self.invalid,
            **{f"duration_{reason.name.lower()}": self.untimed[reason] for reason in NoDuration},
        }

    def clauses(self) -> list[str]:
        """Return a clause on each kind of omission that occurred."""
        odd = self.examples.get(NoDuration.UNREADABLE, "")
        bare = self.examples.get(NoDuration.UNITLESS, "")
        counts = (
            (self.others, "have no type of their own"),
            (self.late, "came after their period was closed"),
            (self.untimed[NoDuration.ABSENT] if self.timed else 0, "have no duration"),
            (
                self.untimed[NoDuration.UNREADABLE],
                f"have a duration that could not be read, such as {odd!r}",
            ),
            (
                self.untimed[NoDuration.UNITLESS],
                f"have a duration whose unit nothing says, such as {bare}: --duration-unit gives it",
            ),
        )
        texts = [f"{many:,} {which}" for many, which in counts if many]
        if self.parts:
            texts.append(
                f"{self.parts:,} lines of requests that other lines count, as at their end, were left out"
            )
        for path, requests in self.folds.most_common(MOST_NAMED):
            names = f"more than {MOST_CHILDREN} names at {path}"
            texts.append(f"{requests:,} to {names} were folded to :name: --rule names types")
        if len(self.folds) > MOST_NAMED:
            texts.append(f"names at {len(self.folds) - MOST_NAMED} more paths were folded")
        if self.cut:
            bounds = f"{MOST_DEPTH} parts, {MAX_TYPE} characters or {MOST_PARENTS:,} paths"
            texts.append(f"{self.cut:,} to paths beyond {bounds} were cut to {CUT}: --rule names types")
        if self.invalid:
            named = ", ".join(map(str, self.invalid_lines))
            why = f" ({self.wrong_time})" if self.wrong_time else ""
            texts.append(f"{self.invalid:,} lines could not be read, the first: {named}{why}")
        if self.zone == "UTC":
            texts.append("times without an offset count as UTC: --time-zone names another")
        texts += self.remarks
        return texts
