"""Verdicts on trials as evidence on changes."""

from __future__ import annotations

from pipeline.messages.records import columns_of
from pipeline.stages.gather.change_findings import all_findings, trial_findings
from pipeline.storage.arrays import ArrayStore
from tests.support.trial_verdicts import verdict_row

T = 1_700_000_000.0


def test_the_last_revision_of_whole_experiments_counts() -> None:
    store = ArrayStore()
    rows = [
        verdict_row("shop", "scored", T, "pass"),
        verdict_row("shop", "scored", T, "fail", revision=2),
        verdict_row("shop", "plain", T, "pass", scores=[]),
        verdict_row("shop", "open", T, "not enough"),
        verdict_row("shop", "cut", T, complete=False),
        verdict_row("shop", "late", T + 100),
    ]
    store.insert("trial_verdicts", columns_of(rows))
    scored, plain = sorted(
        trial_findings(store, "shop", T - 10, T + 10), key=lambda one: one.names, reverse=True
    )
    assert scored.names == ("abc1234", "scored")
    (failed,), (passed,) = scored.metrics, plain.metrics
    assert (failed.failed, failed.false_positives, failed.false_negatives) == (True, 0.03, 0.1)
    assert (passed.failed, passed.false_positives, passed.false_negatives) == (False, 0.05, 0.5)
    assert trial_findings(store, "other", T - 10, T + 10) == ()
    everything = all_findings(store, "shop", T - 10, T + 10)
    assert sorted(one.experiment for one in everything) == ["cut", "open", "plain", "scored"]
