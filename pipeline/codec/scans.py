"""What travels between stages: progress, and scans with their candidates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import orjson

from pipeline.codec import fields
from pipeline.codec.domains import domain_from_json, domain_to_json
from pipeline.errors import InvalidMessage
from pipeline.model import Candidate, Dropped, Joined, Judgement, MetricKind, Progress, RegressionKind, Scan

MAX_PART_ITEMS = 3000
"""Candidates and dropped ones in one message; with every step's decisions about 2.5 MB of JSON."""

MAX_PARTS = 10_000
"""Most parts of one scan: they wait in memory for each other."""

MAX_GROUP_DEPTH = 16
"""How deep groups may be nested: far beyond what merging makes, far below Python's recursion limit."""


def encode_progress(progress: Progress) -> bytes:
    """Encode progress; the inverse of decode_progress."""
    return orjson.dumps(
        {
            "service": progress.service,
            "topic": progress.topic,
            "partition": progress.partition,
            "watermark": progress.watermark,
            "earliest": progress.earliest,
        }
    )


def decode_progress(value: bytes | None) -> Progress:
    """Decode and check progress.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    raw = fields.parse_object(value, max_depth=None)
    return Progress(
        service=fields.text(raw, "service"),
        topic=fields.text(raw, "topic"),
        partition=fields.integer(raw, "partition"),
        watermark=fields.moment(raw, "watermark"),
        earliest=fields.moment(raw, "earliest"),
    )


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
    """Return an item's length in candidates: members and verdicts of domains are about as long as one."""
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
        raw["passed"] = [judgement_to_json(judgement) for judgement in candidate.passed]
    if candidate.domains:
        raw["domains"] = [domain_to_json(verdict) for verdict in candidate.domains]
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
        passed=tuple(_judgement_from_json(j) for j in fields.listing(raw, "passed", optional=True)),
        domains=tuple(domain_from_json(d) for d in fields.listing(raw, "domains", optional=True)),
    )


def judgement_to_json(judgement: Judgement) -> dict[str, Any]:
    """Return a step's decision as a JSON object."""
    return {
        "step": judgement.step,
        "statistic": judgement.statistic,
        "bound": judgement.bound,
        "reason": judgement.reason,
    }


def _judgement_from_json(raw: object) -> Judgement:
    if not isinstance(raw, dict):
        raise InvalidMessage("passed: each should be an object")
    return Judgement(
        step=fields.text(raw, "step"),
        statistic=fields.number(raw, "statistic"),
        bound=fields.number(raw, "bound"),
        reason=fields.text(raw, "reason", ""),
    )


def dropped_to_json(dropped: Dropped) -> dict[str, Any]:
    """Return a dropped candidate as a JSON object, the ledger's line."""
    return {
        "candidate": candidate_to_json(dropped.candidate),
        "step": dropped.step,
        "statistic": dropped.statistic,
        "bound": dropped.bound,
        "reason": dropped.reason,
    }


def _dropped_from_json(raw: object) -> Dropped:
    if not isinstance(raw, dict):
        raise InvalidMessage("dropped: each should be an object")
    return Dropped(
        candidate=candidate_from_json(raw.get("candidate")),
        step=fields.text(raw, "step"),
        statistic=fields.number(raw, "statistic"),
        bound=fields.number(raw, "bound"),
        reason=fields.text(raw, "reason", ""),
    )
