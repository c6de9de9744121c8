"""A score as JSON: flat numbers first, then each rate with its counts and interval."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from loadgen.evaluation.funnel import funnel_lines
from loadgen.evaluation.matching import Matching
from loadgen.evaluation.model import RunFunnel
from loadgen.evaluation.rates import Rate, Spread
from loadgen.evaluation.scoring import RootCause, Score
from loadgen.evaluation.sweep import SweepCurve


def score_to_json(score: Score, curves: Sequence[SweepCurve] = ()) -> dict[str, Any]:
    """Return a score as a JSON object; figures without a value are null."""
    return {
        "precision": score.precision.value,
        "recall": score.recall.value,
        "f1": score.f1,
        "false_positive_rate": score.false_positive_rate and score.false_positive_rate.value,
        **_counts(score.matching),
        "rates": {
            "precision": rate_to_json(score.precision),
            "recall": rate_to_json(score.recall),
            "detectable": rate_to_json(score.detectable),
            "rollouts": rate_to_json(score.rollouts),
            "first_stage": rate_to_json(score.first_stage),
            "false_positive_rate": score.false_positive_rate and rate_to_json(score.false_positive_rate),
            "repeated": rate_to_json(score.repeated),
            "cost_shifts": rate_to_json(sum((rate for _, rate in score.cost_shifts), Rate(0, 0))),
        },
        "kinds": [
            {"kind": s.name, "expected": s.expected, "reported": rate_to_json(s.rows)} for s in score.kinds
        ],
        "cost_shifts": _named(score.cost_shifts, "form"),
        "false_positive_kinds": dict(score.false_kinds),
        "precision_by_event_kind": _named(score.event_kinds, "kind"),
        "recall_by_size": _named(score.sizes, "size"),
        "precision_by_size": _named(score.event_sizes, "size"),
        "delay_s": _spread(score.delay),
        "change_time_error_s": _spread(score.shift),
        "change_time_interval": {
            "coverage": rate_to_json(score.coverage),
            "width_s": _spread(score.interval_width),
        },
        "grouping": {
            "precision": rate_to_json(score.group_precision),
            "recall": rate_to_json(score.group_recall),
        },
        "root_cause": _root_cause(score.root_cause),
        "funnel": score.funnel and funnel_to_json(score.funnel),
        "curves": [curve_to_json(curve) for curve in curves],
        "judged": [
            {
                "event": judged.event.id,
                "metric": judged.event.metric,
                "outcome": judged.outcome,
                "truth": judged.truth.id if judged.truth else None,
                "near": judged.near.id if judged.near else None,
            }
            for judged in score.matching.judged
        ],
        "missed": [row.id for row in score.matching.missed],
    }


def rate_to_json(rate: Rate) -> dict[str, Any]:
    """Return a rate with its counts and Wilson's interval of 95 %."""
    low, high = rate.interval or (None, None)
    return {"value": rate.value, "low": low, "high": high, "hits": rate.hits, "of": rate.of}


def funnel_to_json(funnel: RunFunnel) -> dict[str, Any]:
    """Return a funnel with the ratios of Table 5."""
    return {
        "scans": funnel.scans,
        "series": funnel.series,
        "steps": [
            {"step": line.step, "remaining": line.remaining, "one_in": line.one_in}
            for line in funnel_lines(funnel)
        ],
    }


def curve_to_json(curve: SweepCurve) -> dict[str, Any]:
    """Return a curve's points."""
    return {
        "setting": curve.setting,
        "points": [
            {"bound": p.bound, "recall": rate_to_json(p.recall), "false_positive_rate": rate_to_json(p.false)}
            for p in curve.points
        ],
    }


def _counts(matching: Matching) -> dict[str, int]:
    return {
        "events": len(matching.judged),
        "true_positives": len(matching.having("true_positive")),
        "repeated": len(matching.having("repeated")),
        "allowed": len(matching.having("allowed")),
        "false_positives": len(matching.having("false_positive")),
        "false_negatives": len(matching.missed),
    }


def _named(rates: Iterable[tuple[str, Rate]], key: str) -> list[dict[str, Any]]:
    return [{key: name, **rate_to_json(rate)} for name, rate in rates]


def _spread(spread: Spread | None) -> dict[str, Any] | None:
    return asdict(spread) if spread else None


def _root_cause(rates: RootCause) -> dict[str, Any]:
    return {
        "top_1": rate_to_json(rates.top_1),
        "top_3": rate_to_json(rates.top_3),
        "suggested": rate_to_json(rates.suggested),
        "right_when_suggested": rate_to_json(rates.right),
        "false_suggestions": rate_to_json(rates.false_suggestions),
        "suggestions_on_false_positives": rate_to_json(rates.on_false_positives),
    }
