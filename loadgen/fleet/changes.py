"""Stream of deployed changes: hundreds to thousands of harmless ones, and the root causes among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadgen.fleet.names import Text, file_of, owner_of, pick, vocabulary
from loadgen.fleet.scenario import ChangesSpec
from loadgen.fleet.streams import Streams
from loadgen.fleet.timeline import Timeline
from pipeline.model import Change


@dataclass(frozen=True, slots=True)
class DeployedCause:
    """Changes that were deployed for one effect, and the id of the root cause among them."""

    id: str | None = None
    changes: tuple[Change, ...] = ()
    code_id: str | None = None  # the earlier change of code behind a closed gate


def change_id(rng: np.random.Generator) -> str:
    """Draw an id, which does not reveal the root cause."""
    return f"D{int(rng.integers(10**9, 10**10))}"


def background(
    spec: ChangesSpec, streams: Streams, service: str, timeline: Timeline, names: Sequence[str]
) -> list[Change]:
    """Draw harmless changes over the whole span, most of them deployed with a release."""
    changes = []
    for number in range(spec.count):
        rng = streams.of("changes", str(number))
        at = timeline.at(float(rng.random()))
        if rng.random() < spec.config:
            changes.append(_configuration(rng, service, at))
            continue
        release = timeline.start + (at - timeline.start) // spec.release_every_s * spec.release_every_s
        at = release + float(rng.uniform(0, min(600.0, spec.release_every_s / 2)))
        touched = [names[int(i)] for i in rng.integers(len(names), size=int(rng.geometric(0.5)))]
        changes.append(_code(rng, service, at, touched, vocabulary().harmless))
    return changes


def deploy(
    rng: np.random.Generator,
    service: str,
    at: float,
    subroutines: Sequence[str],
    *,
    by_config: bool = False,
    gate: str = "",
) -> DeployedCause:
    """Deploy a change that makes subroutines cost more, in code or by a gate that configuration opens.

    Three in ten root causes have texts that do not describe the change. A gate's code was deployed hours to
    days before, shut; the root cause is the change that opens it (FBDetect §5.4.9).
    """
    texts = vocabulary().vague if rng.random() < 0.3 else vocabulary().explicit
    if not by_config:
        return _caused_by(_code(rng, service, at, subroutines, texts))
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
    return DeployedCause(opening.id, (code, opening), code.id)


def refactor(rng: np.random.Generator, service: str, at: float, subroutines: Sequence[str]) -> DeployedCause:
    """Deploy a change that only moves cost."""
    return _caused_by(_code(rng, service, at, subroutines, vocabulary().moved))


def upgrade(rng: np.random.Generator, service: str, at: float, package: str) -> DeployedCause:
    """Deploy another version of a library. It names no subroutine: the code is in another repository."""
    major, minor = (int(number) for number in rng.integers(1, 20, size=2))
    old, new = f"{major}.{minor}.0", f"{major}.{minor + 1}.0"
    change = Change(
        id=change_id(rng),
        service=service,
        time=at,
        title=f"Upgrade {package} from {old} to {new}",
        author=_author(rng),
        files=("requirements.lock",),
        content=f"-{package}=={old}\n+{package}=={new}",
    )
    return _caused_by(change)


def speed_up(rng: np.random.Generator, service: str, at: float, subroutines: Sequence[str]) -> DeployedCause:
    """Deploy a change that makes subroutines cost less."""
    return _caused_by(_code(rng, service, at, subroutines, vocabulary().faster))


def _caused_by(change: Change) -> DeployedCause:
    return DeployedCause(change.id, (change,))


def _code(
    rng: np.random.Generator,
    service: str,
    at: float,
    subroutines: Sequence[str],
    texts: Sequence[Text],
    *,
    gate: str = "",
) -> Change:
    title, summary = pick(rng, texts)
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
    """Draw the diff of a change by its id alone: root causes do not differ from other changes."""
    rng, words = np.random.default_rng(int(identity[1:])), vocabulary()
    lines = []
    for name in subroutines:
        lines.append(f"@@ def {name.rpartition('.')[2]}")
        if gate:
            lines.append(f'+if gates.enabled("{gate}"):')
        for _ in range(int(rng.integers(1, 4))):
            removed, added = pick(rng, words.lines)
            a, b = (words.things[int(i)] for i in rng.integers(len(words.things), size=2))
            lines += [f"-{line.format(a=a, b=b)}" for line in removed]
            lines += [f"+{line.format(a=a, b=b)}" for line in added]
    return "\n".join(lines)


def _configuration(rng: np.random.Generator, service: str, at: float) -> Change:
    key = pick(rng, vocabulary().settings)
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
    return pick(rng, vocabulary().authors)
