"""Words for series that a scan could not judge."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.model import Unjudged

SENTENCES: Mapping[str, str] = {
    "no_data": "no series had any data",
    "no_history": "{value:.0%} of the history's windows had data; {bound:.0%} are needed",
    "windows_empty": "{value:.0f} of the windows could begin or hold a change; {bound:.0f} are needed",
    "noise_unknown": "the noise has {value:.1f} degrees of freedom; more than {bound:.0f} are needed",
    "few_samples": "the largest change possible would have a p-value of {value:.2g}; {bound:.2g} is needed",
    "direction_unknown": "neither metadata nor name says in which direction the metric gets worse",
    "store_refused": "the store refused the memory or the time that the scan takes",
}
"""Texts by codes of ``pipeline.analysis.detect.unjudged``, with the number that fell short and its bound."""


def describe_unjudged(unjudged: Unjudged) -> str:
    """Write a code with its numbers; an unknown one unchanged."""
    sentence = SENTENCES.get(unjudged.code, "").format(value=unjudged.value, bound=unjudged.bound)
    return f"{unjudged.code}: {sentence}" if sentence else unjudged.code
