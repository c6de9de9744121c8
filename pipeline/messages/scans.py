"""Messages between stages: progress, and scans with their candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import xxhash

from pipeline.messages import fields
from pipeline.messages.records import check, encode, field_names, own_form, plain, read, to_json
from pipeline.messages.schema import scans as shapes
from pipeline.model import (
    Candidate,
    CostlierRequests,
    Decision,
    Dropped,
    Joined,
    Outgoing,
    Progress,
    Rename,
    Scan,
)
from pipeline.model.errors import InvalidMessage
from pipeline.model.step_codes import RELEASE_COSTS
from pipeline.model.steps import TEXT, sentence

MAX_PART_ITEMS = 3000
"""Most candidates and dropped ones in one message: about 2.5 MB of JSON with every step's decisions."""

_LISTS = ("candidates", "dropped", "grown", "joined", "renames")
"""Lists of a scan that may be too long for one message."""

_NAMED = 3
"""Number of subjects that name the type and both releases of costlier requests; other types follow."""

MAX_GROUP_DEPTH = 16
"""Largest depth of nested groups: far more than merging produces, far less than Python's recursion limit."""


def encode_progress(progress: Progress) -> bytes:
    """Encode progress; the inverse of decode_progress."""
    return encode(progress)


def decode_progress(value: bytes | None) -> Progress:
    """Decode and check progress.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    return read(Progress, check(shapes.Progress, fields.parse_object(value, max_depth=None)))


def split_scan(scan: Scan, max_items: int = MAX_PART_ITEMS) -> list[Scan]:
    """Cut a scan too large for one message into numbered parts, candidates first.

    The parts carry the hash of all their content as their attempt: a scan that is repeated with late samples
    may be cut differently, and its parts must not be mixed with those of the first attempt.
    """
    chunks: list[dict[str, list[Any]]] = [{}]
    weight = 0
    for kind in _LISTS:
        for item in getattr(scan, kind):
            size = _weight(item)
            if chunks[-1] and weight + size > max_items:
                chunks.append({})
                weight = 0
            chunks[-1].setdefault(kind, []).append(item)
            weight += size
    parts = []
    for part, chunk in enumerate(chunks):
        content: dict[str, Any] = {kind: tuple(chunk.get(kind, ())) for kind in _LISTS}
        content["share_factor"] = None if part else scan.share_factor
        content["unjudged"] = () if part else scan.unjudged
        parts.append(replace(scan, **content, part=part, parts=len(chunks), attempt=""))
    if len(parts) == 1:
        return parts
    content_of = xxhash.xxh3_128()
    for numbered in parts:
        content_of.update(encode_scan(numbered))
    return [replace(numbered, attempt=content_of.hexdigest()) for numbered in parts]


def _weight(item: Candidate | Dropped | Joined | Rename) -> int:
    """Return an item's length in candidates: members and cost domains are about as long as one."""
    if isinstance(item, Rename):
        return 1
    candidate = item if isinstance(item, Candidate) else item.candidate
    return 1 + len(candidate.group) + len(candidate.domains)


def join_scan(parts: Sequence[Scan]) -> Scan:
    """Assemble the parts of one scan, complete and in order; the inverse of split_scan."""
    whole: dict[str, Any] = {
        kind: tuple(item for part in parts for item in getattr(part, kind)) for kind in _LISTS
    }
    return replace(parts[0], **whole, part=0, parts=1, attempt="")


def scan_messages(topic: str, scan: Scan) -> list[Outgoing]:
    """Return the messages that carry a scan, one per part."""
    return [Outgoing(topic, scan.service, encode_scan(part)) for part in split_scan(scan)]


def encode_scan(scan: Scan) -> bytes:
    """Encode one part of a scan; the inverse of decode_scan."""
    return encode(scan)


def decode_scan(value: bytes | None) -> Scan:
    """Decode and check one part of a scan.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    raw = check(shapes.Scan, fields.parse_object(value, max_depth=None))
    if raw.get("part", 0) >= raw.get("parts", 1):
        raise InvalidMessage(f"part: {raw.get('part', 0)} of {raw.get('parts', 1)}")
    holders = (*(raw.get("dropped") or ()), *(raw.get("joined") or ()))
    found = (*raw["candidates"], *(raw.get("grown") or ()), *(holder["candidate"] for holder in holders))
    _check_groups(found)
    return read(Scan, raw)


def candidate_from_json(raw: object, where: str = "candidate") -> Candidate:
    """Check a candidate that is already parsed; ``where`` stands before the field that is wrong.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    checked = check(shapes.Candidate, raw, where)
    _check_groups([checked])
    return read(Candidate, checked)


def decision_to_json(decision: Decision) -> dict[str, Any]:
    """Return a step's decision as a JSON object; ``reason`` is its sentence, which former versions read."""
    raw: dict[str, Any] = {
        "step": decision.step,
        "statistic": decision.statistic,
        "bound": decision.bound,
        "reason": sentence(decision),
    }
    if decision.code:
        raw["code"] = decision.code
    requests = decision.requests
    # Former versions read the other types and the chances behind the subjects.
    if subjects := [*decision.subjects, *(requests.or_types if requests else ())]:
        raw["subjects"] = subjects
    if requests:
        raw["requests"] = to_json(requests)
        if requests.chances:
            raw["chances"] = list(requests.chances)
    return raw


def decision_of(checked: Mapping[str, Any], *, passed: bool) -> Decision:
    """Return a decision that was checked; of one by a former version only the sentence is left."""
    code, subjects = checked.get("code", ""), tuple(checked.get("subjects") or ())
    if not code and (reason := checked.get("reason")):
        code, subjects = TEXT, (reason,)
    requests = _requests_of(checked, subjects)
    if requests:
        subjects = subjects[: len(subjects) - len(requests.or_types)]
    return Decision(checked["step"], passed, checked["statistic"], checked["bound"], code, subjects, requests)


def _requests_of(checked: Mapping[str, Any], subjects: tuple[str, ...]) -> CostlierRequests | None:
    """Return the requests that cost more; former versions wrote them as subjects and chances."""
    if (requests := checked.get("requests")) is not None:
        return read(CostlierRequests, requests)
    if (checked["step"], checked.get("code")) != (RELEASE_COSTS, "dearer") or len(subjects) < _NAMED:
        return None
    type_, release, former, *others = subjects
    chances = tuple(checked.get("chances") or ())
    return CostlierRequests(
        type_, release, former, checked["statistic"], checked["bound"], tuple(others), chances
    )


def _dropped(checked: Mapping[str, Any]) -> Dropped:
    return Dropped(read(Candidate, checked["candidate"]), decision_of(checked, passed=False))


def _dropped_to_json(dropped: Dropped) -> dict[str, Any]:
    return {"candidate": dropped.candidate, **decision_to_json(dropped.decision)}


def _candidate_to_json(candidate: Candidate) -> dict[str, Any]:
    """Return its fields, without lists that are empty and what is not known."""
    # In one pass: a scan of a large service holds hundreds of thousands.
    return {
        name: value
        for name in field_names(Candidate)
        if (value := getattr(candidate, name)) != () and value is not None
    }


def _scan_to_json(scan: Scan) -> dict[str, Any]:
    raw = plain(scan)
    left_out = {
        **{"share_factor": None, "resolution_s": None, "unjudged": (), "renames": (), "attempt": ""},
        "silent_partitions": 0,
    }
    for name, absent in left_out.items():
        if getattr(scan, name) == absent:
            del raw[name]
    return raw


def _check_groups(candidates: Iterable[Mapping[str, Any]]) -> None:
    """Raise InvalidMessage if groups are nested deeper; level by level, so it needs no stack."""
    for _ in range(MAX_GROUP_DEPTH + 1):
        candidates = [member for candidate in candidates for member in candidate.get("group") or ()]
    if candidates:
        raise InvalidMessage(f"candidates: groups nested deeper than {MAX_GROUP_DEPTH}")


own_form(Candidate, _candidate_to_json)
own_form(Decision, decision_to_json, partial(decision_of, passed=True))
own_form(Dropped, _dropped_to_json, _dropped)
own_form(Scan, _scan_to_json)
