"""Answers of judging steps that have many of them: see ``pipeline.model.steps``."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.model.step import Code

COMMON = "share of its rise through what they have in common"
SURE = "how sure it is that so many changes of one deployment are no chance"
STACKS = "share of its rise in stacks that they have in common"

LINKS: Mapping[str, Code] = {
    "cause": Code(
        "rises through the same subroutine or change as {0}",
        "most similar in what it rises through: {0}",
        COMMON,
    ),
    "caller": Code("rises in a caller shared with {0}", "most similar in its caller: {0}", COMMON),
    "release": Code("modified in the same release as {0}", "most similar in its release: {0}", SURE),
    "stacks": Code("explained by the stacks of {0}", "most similar in its stacks: {0}", STACKS),
    "residual": Code(
        "hardly more than what rises below it: {0}",
        "most of it rises below it: {0}",
        "share of its rise through that one; beyond the bound the rest is no change point by itself",
    ),
    "som": Code(
        "on one part of the map with {0}",
        "nearest on the map: {0}",
        "similarity of their features; being on one part of the map is enough",
    ),
    "correlation": Code(
        "moves together with {0}", "most similar in how it moves: {0}", "correlation of the two series"
    ),
    "metric_id": Code(
        "has a name like that of {0}", "most similar in its name: {0}", "similarity of the two names"
    ),
    "onset": Code(
        "begins at the same time as {0}",
        "begins at much the same time as {0}",
        "how sure it is that both do not begin at one time by chance",
    ),
    "unlike": Code(passed="unlike everything that it was compared with"),
    "nothing": Code(passed="nothing to compare with"),
    "alone": Code(passed="no other candidate goes with it"),
}
"""Answers of deduplication: in what two regressions are one, or came nearest to it."""

EXPLAINED: Mapping[str, Code] = {
    "own": Code(passed="{0}"),
    "through": Code(passed="rose through {1}: {0}"),
    "moved": Code(passed="its cost came from {1}: {0}"),
    "entry": Code(passed="its entry got more traffic, or dearer as a whole: {0}"),
    "unclear": Code(passed="no cause of most of it stands out of the noise: {0}"),
    "failed": Code(passed="the stacks could not be explained: {0}"),
    "gone": Code(passed="it did not rise against what is usual at these hours: {0}"),
}
"""Answers of the explanation; {0} are the parts of the rise, {1} is what most of it goes through or left."""

RELEASE_COSTS = "release_costs"
"""Key of the comparison of releases."""

RELEASES: Mapping[str, Code] = {
    "dearer": Code(passed="requests of {0} cost more in release {1} than in {2}"),
    "small": Code("release {0} changes what requests cost, and the whole hardly rises against {1}"),
    "no_metric": Code(
        "release {0} not judged against {1}: the service sends no metric of CPU, nor one of its rules"
    ),
    "few_periods": Code(
        "release {0} not judged against {1}: too few periods",
        measures="periods with requests and the metric, against as many as are needed",
    ),
    "constant": Code("release {0} not judged against {1}: the metric is constant"),
    "no_common_type": Code("release {0} not judged against {1}: they have no type of request in common"),
    "nothing_varies": Code("release {0} not judged against {1}: no type of request varies"),
    "unseen_load": Code(
        "release {0} not judged against {1}, which never saw such load",
        measures="share of the new release's periods with such load, against the most",
    ),
}
"""Answers of the comparison of releases; {0} is the new one where nothing is found, {1} the one before."""
