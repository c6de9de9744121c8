"""Flips of gates, and the changes that they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson
import xxhash

from agents.source.changes.bounds import MAX_TEXT, fit
from pipeline.model import Change

ON, OFF = "on", "off"

_LONGEST_GATE = 300
"""Longest name of a gate in an id, in characters."""


@dataclass(frozen=True, slots=True)
class Flip:
    """A change of a gate's state. Texts are empty where they are not known."""

    gate: str
    time: float  # epoch seconds
    before: str = ""  # its state in a few words: on, off, a variant
    after: str = ""
    author: str = ""
    note: str = ""
    project: str = ""
    environment: str = ""
    id: str = ""  # of the flag service's own event; empty: time and states make it


def flip_change(flip: Flip, service: str) -> Change:
    """Return a flip as a change of a service; its id is the same when the flip is announced again."""
    identity = [flip.id] if flip.id else [flip.time, flip.before, flip.after]
    digest = xxhash.xxh3_64_hexdigest(orjson.dumps([flip.project, flip.environment, flip.gate, *identity]))
    change, _ = fit(
        Change(
            id=f"flip:{flip.gate[:_LONGEST_GATE]}:{digest[:12]}",
            service=service,
            time=flip.time,
            title=_title(flip),
            author=flip.author,
            summary=flip.note,
            gates=(flip.gate[:MAX_TEXT],),
        )
    )
    return change


def flip_changes(flips: Sequence[Flip], service: str) -> list[Change]:
    """Return flips as changes of a service."""
    return [flip_change(flip, service) for flip in flips]


def _title(flip: Flip) -> str:
    where = f" in {flip.environment}" if flip.environment else ""
    if flip.after in (ON, OFF) and flip.before in (ON, OFF, ""):
        return f"Turn {flip.after} {flip.gate}{where}"
    if flip.before and flip.after and flip.before != flip.after:
        return f"Change {flip.gate} from {flip.before} to {flip.after}{where}"
    return f"Change {flip.gate}{f': {flip.after}' if flip.after else ''}{where}"
