"""What travels between stages: progress, and scans with their candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import orjson

from pipeline.codec import fields
from pipeline.codec.domains import domain_from_json, domain_to_json
from pipeline.codec.records import check, read
from pipeline.codec.schema import scans as shapes
from pipeline.codec.schema.scans import MAX_PARTS
from pipeline.errors import InvalidMessage
from pipeline.model import Candidate, Decision, Dropped, Joined, MetricKind, Progress, RegressionKind, Scan
from pipeline.steps import TEXT, sentence

MAX_PART_ITEMS = 3000
"""Candidates and dropped ones in one message; with every step's decisions about 2.5 MB of JSON."""

MAX_GROUP_DEPTH = 16
"""How deep groups may be nested: far beyond what merging makes, far below Python's recursion limit."""


def encode_progress(progress: Progress) -> bytes:
    """Encode progress; the inverse of decode_progress."""
    return orjson.dumps(progress)


def decode_progress(value: bytes | None) -> Progress:
    """Decode and check progress.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    return read(Progress, check(shapes.Progress, fields.parse_object(value, max_depth=None)))


def split_scan(scan: Scan, max_items: int = MAX_PART_ITEMS) -> list[Scan]:
    """Cut a scan too large for one message into numbered parts, candidates first."""
    items: list[tuple[str, Candidate | Dropped | Joined]] = [
        *(("candidates", candidate) for candidate in scan.candidates),
        *(("dropped", line) for line in scan.dropped),
        *(("grown", candidate) for candidate in scan.grown),
        *(("joined", joined) for joined in scan.joined),
    ]
    chunks: list[list[tuple[str, Candidate | Dropped | Joined]]] = [[]]
    weight = 0
    for kind, item in items:
        size = _weight(item)
        if chunks[-1] and weight + size > max_items:
            chunks.append([])
            weight = 0
        chunks[-1].append((kind, item))
        weight += size
    found = []
    for part, chunk in enumerate(chunks):
        content: dict[str, Any] = {
            name: tuple(item for kind, item in chunk if kind == name)
            for name in ("candidates", "dropped", "grown", "joined")
        }
        found.append(replace(scan, **content, part=part, parts=len(chunks)))
    return found


def _weight(item: Candidate | Dropped | Joined) -> int:
    """Return an item's length in candidates: members and cost domains are about as long as one."""
    candidate = item if isinstance(item, Candidate) else item.candidate
    return 1 + len(candidate.group) + len(candidate.domains)


def join_scan(parts: list[Scan]) -> Scan:
    """Put the parts of one scan, in order and complete, together again; the inverse of split_scan."""
    return replace(
        parts[0],
        candidates=tuple(c for part in parts for c in part.candidates),
        dropped=tuple(d for part in parts for d in part.dropped),
        grown=tuple(c for part in parts for c in part.grown),
        joined=tuple(j for part in parts for j in part.joined),
        part=0,
        parts=1,
    )


def encode_scan(scan: Scan) -> bytes:
    """Encode one part of a scan; the inverse of decode_scan."""
    return orjson.dumps(
        {
            "service": scan.service,
            "workload": scan.workload,
            "start": scan.start,
            "analysis_start": scan.analysis_start,
            "analysis_end": scan.analysis_end,
            "end": scan.end,
            "series": scan.series,
            "candidates": [candidate_to_json(c) for c in scan.candidates],
            "dropped": [dropped_to_json(d) for d in scan.dropped],
            "grown": [candidate_to_json(c) for c in scan.grown],
            "joined": [
                {"regression": joined.regression, "candidate": candidate_to_json(joined.candidate)}
                for joined in scan.joined
            ],
            "part": scan.part,
            "parts": scan.parts,
        }
    )


def decode_scan(value: bytes | None) -> Scan:
    """Decode and check one part of a scan.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    raw = fields.parse_object(value, max_depth=None)
    part, parts = fields.integer(raw, "part", 0), fields.integer(raw, "parts", 1, limit=MAX_PARTS)
    if part >= parts:
        raise InvalidMessage(f"part: {part} of {parts}")
    return Scan(
        service=fields.text(raw, "service"),
        workload=fields.text(raw, "workload"),
        start=fields.moment(raw, "start"),
        analysis_start=fields.moment(raw, "analysis_start"),
        analysis_end=fields.moment(raw, "analysis_end"),
        end=fields.moment(raw, "end"),
        series=fields.integer(raw, "series"),
        candidates=tuple(candidate_from_json(c) for c in fields.listing(raw, "candidates")),
        dropped=tuple(_dropped_from_json(d) for d in fields.listing(raw, "dropped", optional=True)),
        grown=tuple(candidate_from_json(c) for c in fields.listing(raw, "grown", optional=True)),
        joined=tuple(_joined_from_json(j) for j in fields.listing(raw, "joined", optional=True)),
        part=part,
        parts=parts,
    )


def _joined_from_json(raw: object) -> Joined:
    if not isinstance(raw, dict):
        raise InvalidMessage("joined: each should be an object")
    return Joined(fields.text(raw, "regression"), candidate_from_json(raw.get("candidate")))


def candidate_to_json(candidate: Candidate) -> dict[str, Any]:
    """Return a candidate as a JSON object."""
    raw: dict[str, Any] = {
        "metric_kind": candidate.metric_kind,
        "metric": candidate.metric,
        "kind": candidate.kind,
        "change_time": candidate.change_time,
        "before": candidate.before,
        "after": candidate.after,
        "p_value": candidate.p_value,
        "statistic": candidate.statistic,
    }
    if candidate.group:
        raw["group"] = [candidate_to_json(member) for member in candidate.group]
    if candidate.passed:
        raw["passed"] = [decision_to_json(decision) for decision in candidate.passed]
    if candidate.domains:
        raw["domains"] = [domain_to_json(domain) for domain in candidate.domains]
    return raw


def candidate_from_json(raw: object, depth: int = 0) -> Candidate:
    """Check a candidate that is already parsed; ``depth`` counts the groups that it stands in.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    if not isinstance(raw, dict):
        raise InvalidMessage("candidates: each should be an object")
    if depth > MAX_GROUP_DEPTH:
        raise InvalidMessage(f"candidates: groups nested deeper than {MAX_GROUP_DEPTH}")
    metric_kind, kind = fields.text(raw, "metric_kind"), fields.text(raw, "kind")
    if metric_kind not in get_args(MetricKind) or kind not in get_args(RegressionKind):
        raise InvalidMessage(f"candidates: unknown kind {metric_kind[:40]!r}, {kind[:40]!r}")
    return Candidate(
        metric_kind=metric_kind,  # type: ignore[arg-type]  # one of the literal's values, just checked
        metric=fields.text(raw, "metric"),
        kind=kind,  # type: ignore[arg-type]  # likewise
        change_time=fields.moment(raw, "change_time"),
        before=fields.number(raw, "before"),
        after=fields.number(raw, "after"),
        p_value=fields.number(raw, "p_value"),
        statistic=fields.number(raw, "statistic"),
        group=tuple(
            candidate_from_json(member, depth + 1) for member in fields.listing(raw, "group", optional=True)
        ),
        passed=tuple(_passed_from_json(d) for d in fields.listing(raw, "passed", optional=True)),
        domains=tuple(domain_from_json(d) for d in fields.listing(raw, "domains", optional=True)),
    )


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
    if decision.subjects:
        raw["subjects"] = decision.subjects
    return raw


def decision_from_json(raw: Mapping[str, Any], *, passed: bool) -> Decision:
    """Check a step's decision that is already parsed; of a former version only the sentence is left.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    code, reason = fields.text(raw, "code", ""), fields.text(raw, "reason", "")
    subjects = fields.texts(raw, "subjects", limit=4 * fields.MAX_NAME)
    if not code and reason:
        code, subjects = TEXT, (reason,)
    return Decision(
        step=fields.text(raw, "step"),
        passed=passed,
        statistic=fields.number(raw, "statistic"),
        bound=fields.number(raw, "bound"),
        code=code,
        subjects=subjects,
    )


def _passed_from_json(raw: object) -> Decision:
    if not isinstance(raw, dict):
        raise InvalidMessage("passed: each should be an object")
    return decision_from_json(raw, passed=True)


def dropped_to_json(dropped: Dropped) -> dict[str, Any]:
    """Return a dropped candidate as a JSON object, the ledger's line."""
    return {"candidate": candidate_to_json(dropped.candidate), **decision_to_json(dropped.decision)}


def _dropped_from_json(raw: object) -> Dropped:
    if not isinstance(raw, dict):
        raise InvalidMessage("dropped: each should be an object")
    return Dropped(candidate_from_json(raw.get("candidate")), decision_from_json(raw, passed=False))
