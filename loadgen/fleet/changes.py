"""The stream of deployed changes: hundreds to thousands of harmless ones, and the culprits among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadgen.fleet.names import THINGS, file_of, owner_of
from loadgen.fleet.scenario import ChangesSpec
from loadgen.fleet.streams import Streams
from loadgen.fleet.timeline import Timeline
from pipeline.model import Change

_AUTHORS = (
    "ana",
    "bilal",
    "chiara",
    "dmitri",
    "eun-ji",
    "farah",
    "goran",
    "hana",
    "ines",
    "jonas",
    "kofi",
    "lea",
)
_HARMLESS = (
    ("Tidy up {thing}", "No change of behaviour intended."),
    ("Add types to {thing}", "So that the checker sees through {owner}."),
    ("Log less in {thing}", "The line was written for every request and nobody reads it."),
    ("Cover {thing} with a test", "It had none. Also fixes a typo in a comment."),
    ("Handle empty input in {thing}", "Raised an IndexError before, seen twice last week."),
    ("Rename a variable in {thing}", "The old name said the opposite of what it held."),
    ("Use the new helper in {thing}", "Follows what {owner} does elsewhere."),
    ("Update the copyright header", "Automated."),
    ("Fix rounding in {thing}", "Amounts below a cent were cut off."),
)
_TELLING = (
    ("Loosen the constraints for {thing}", "Takes more candidates into account, so that fewer are missed."),
    ("Validate every entry in {thing}", "Checks all of them instead of the first, after an incident."),
    ("Compute {thing} anew for each request", "The cached value could be stale for up to a minute."),
    ("Support nested values in {thing}", "Walks through the whole structure now."),
)
_VAGUE = (
    ("Prepare for the next release", "Part 2 of 5."),
    ("Address review comments", "Follow-up."),
    ("Fix a bug reported by a customer", "See the ticket."),
)
_FASTER = (("Speed up {thing}", "Builds the table once and keeps it."),)
_MOVED = (("Refactor {owner}", "Moves code around. No change of behaviour intended."),)
_LINES = (
    (("return self.{a}",), ("return self.{a}.{b}()",)),
    (("if {a}:",), ("if {a} and {b}:",)),
    (("for item in {a}:",), ("for item in sorted({a}):",)),
    ((), ("{a} = [item for item in {b} if item]",)),
    (('log.debug("{a} %s", {b})',), ()),
    (("# {a} before {b}",), ("# {b} before {a}",)),
)
"""Lines that a change takes away and adds, whatever it is about: a diff shows what was touched, not whether
it is slower."""

_CONFIG = ("cache_ttl_s", "max_batch", "log_sampling", "retry_limit", "page_size", "timeout_ms")


@dataclass(frozen=True, slots=True)
class Cause:
    """What caused something: the changes that were deployed, and the id of the culprit among them."""

    id: str | None = None
    changes: tuple[Change, ...] = ()
    code_id: str | None = None  # the earlier change of code that a gate kept shut


def change_id(rng: np.random.Generator) -> str:
    """Draw an id; nothing in it tells a culprit."""
    return f"D{int(rng.integers(10**9, 10**10))}"


def background(
    spec: ChangesSpec, streams: Streams, service: str, timeline: Timeline, names: Sequence[str]
) -> list[Change]:
    """Draw harmless changes over the whole span, most of them deployed with a release."""
    found = []
    for number in range(spec.count):
        rng = streams.of("changes", str(number))
        at = timeline.at(float(rng.random()))
        if rng.random() < spec.config:
            found.append(_configuration(rng, service, at))
            continue
        release = timeline.start + (at - timeline.start) // spec.release_every_s * spec.release_every_s
        at = release + float(rng.uniform(0, min(600.0, spec.release_every_s / 2)))
        touched = [names[int(i)] for i in rng.integers(len(names), size=int(rng.geometric(0.5)))]
        found.append(_code(rng, service, at, touched, _HARMLESS))
    return found


def deploy(
    rng: np.random.Generator,
    service: str,
    at: float,
    subroutines: Sequence[str],
    *,
    by_config: bool = False,
    gate: str = "",
) -> Cause:
    """Deploy a change that makes subroutines cost more, in code or by a gate that configuration opens.

    Three in ten culprits say nothing about what they change. A gate's code was deployed hours to days
    before, shut; the culprit is the change that opens it (FBDetect §5.4.9).
    """
    texts = _VAGUE if rng.random() < 0.3 else _TELLING
    if not by_config:
        change = _code(rng, service, at, subroutines, texts)
        return Cause(change.id, (change,))
    earlier = at - float(rng.uniform(3600.0, 2 * 86_400.0))
    code = _code(rng, service, earlier, subroutines, texts, gate=gate)
    opening = Change(
        id=change_id(rng),
        service=service,
        time=at,
        title=f"Set {gate} to true",
        author=_author(rng),
        summary="Rolls the feature out to everybody.",
        files=(f"config/{gate}.json",),
        gates=(gate,),
        content=f'-"{gate}": false\n+"{gate}": true',
    )
    return Cause(opening.id, (code, opening), code.id)


def refactor(rng: np.random.Generator, service: str, at: float, subroutines: Sequence[str]) -> Cause:
    """Deploy a change that only moves cost."""
    change = _code(rng, service, at, subroutines, _MOVED)
    return Cause(change.id, (change,))


def speed_up(rng: np.random.Generator, service: str, at: float, subroutines: Sequence[str]) -> Cause:
    """Deploy a change that makes subroutines cost less."""
    change = _code(rng, service, at, subroutines, _FASTER)
    return Cause(change.id, (change,))


def _code(
    rng: np.random.Generator,
    service: str,
    at: float,
    subroutines: Sequence[str],
    texts: Sequence[tuple[str, str]],
    *,
    gate: str = "",
) -> Change:
    title, summary = texts[int(rng.integers(len(texts)))]
    identity = change_id(rng)
    owner, _, method = subroutines[0].rpartition(".")
    words = {"thing": f"{owner.rpartition('.')[2]}.{method}", "owner": owner_of(subroutines[0])}
    touched = tuple(dict.fromkeys(subroutines))
    return Change(
        id=identity,
        service=service,
        time=at,
        title=title.format(**words),
        author=_author(rng),
        summary=summary.format(**words) + (f" Behind the gate {gate}." if gate else ""),
        files=tuple(dict.fromkeys(file_of(name) for name in subroutines)),
        subroutines=touched,
        gates=(gate,) if gate else (),
        content=_diff(identity, touched, gate),
    )


def _diff(identity: str, subroutines: Sequence[str], gate: str) -> str:
    """Draw the diff of a change by its id alone: the same for culprits and for others."""
    rng = np.random.default_rng(int(identity[1:]))
    lines = []
    for name in subroutines:
        lines.append(f"@@ def {name.rpartition('.')[2]}")
        if gate:
            lines.append(f'+if gates.enabled("{gate}"):')
        for _ in range(int(rng.integers(1, 4))):
            old, new = _LINES[int(rng.integers(len(_LINES)))]
            a, b = (THINGS[int(i)] for i in rng.integers(len(THINGS), size=2))
            lines += [f"-{line.format(a=a, b=b)}" for line in old] + [
                f"+{line.format(a=a, b=b)}" for line in new
            ]
    return "\n".join(lines)


def _configuration(rng: np.random.Generator, service: str, at: float) -> Change:
    key = _CONFIG[int(rng.integers(len(_CONFIG)))]
    identity, value = change_id(rng), int(rng.integers(1, 500))
    return Change(
        id=identity,
        service=service,
        time=at,
        title=f"Set {key} to {value}",
        author=_author(rng),
        files=(f"config/{key}.json",),
        content=f'+"{key}": {value}',
    )


def _author(rng: np.random.Generator) -> str:
    return _AUTHORS[int(rng.integers(len(_AUTHORS)))]
