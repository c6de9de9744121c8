"""The registry of judging steps: every rule that decides on a candidate, in the order in which they run.

Ledger, ``smidgen why``, report, funnel, ablation and docs read it; none of them knows a step by name. A
decision carries a step's key and a code of it; the sentence for a code stands here, once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from pipeline.model import Decision, RegressionKind
from pipeline.model.step import Code as Code
from pipeline.model.step import Stage
from pipeline.model.step import Step as Step
from pipeline.model.step_codes import COMMON, EXPLAINED, LINKS, RELEASES, STACKS, SURE

TEXT = "text"
"""Code of a decision that a version without codes stored: its one subject is the sentence."""

_NOT_SLOW: tuple[RegressionKind, ...] = ("short_term",)
"""The long-term path takes the season out first, and looks at lasting trends by itself (FBDetect §5.4.5)."""

_NO_SERIES = Code("the store no longer holds the series")


def _part(key: str, asks: str, stage: Stage = "detect", measures: str = "") -> Step:
    """Return a step that drops nothing by itself: it is part of how its stage decides."""
    return Step(key, stage, asks, measures=measures, drops=False)


def _factor(name: str, measures: str) -> Step:
    """Return a factor of a suspect's score."""
    asks = "Could this change have caused it?"
    return Step(f"factor_{name}", "rootcause", asks, measures=measures, drops=False, factor=name)


STEPS: tuple[Step, ...] = (
    _part("daily_cycle", "Is it what each day of the history repeats?"),
    _part("week_before", "Did it happen at the same time a week before?"),
    _part("composition", "Did all shares move, since one of them won or lost?"),
    _part("noise_at_scale", "How much do means of such spans vary by themselves?"),
    _part("common_noise", "What do the service's other series say of its noise?"),
    _part("count_likelihood", "How likely are such counts of samples?"),
    Step(
        "renames",
        "detect",
        "Had it another name before?",
        passes="its name is as old as its series",
        codes={"renamed": Code(passed="has the history of its former name {0}")},
        drops=False,
    ),
    Step(
        "exchanged_names",
        "detect",
        "Has the series a history, or were names made anew?",
        measures="share of its rise since its name was made, where many names were made at once",
        passes="its series has a history",
        codes={
            "exchanged": Code("began where as many other names ended: names were made anew, at the same cost")
        },
    ),
    Step(
        "release_effect",
        "detect",
        "Does a release make it dearer than those that run beside it?",
        measures="ratio of its cost on the release to that beside it, with the chance of it",
        passes="no release changes it while others run beside it",
        codes={
            "side_by_side": Code(passed="release {0} changes it, held against what runs beside it"),
            "brought": Code(passed="rose while release {0} rolled out, and is dearer on it"),
        },
        drops=False,
        event_field="releases",
    ),
    Step(
        "mix_shift",
        "detect",
        "Did other hosts, regions or machine types send the samples?",
        measures="share of its rise that is left at a constant mix of those who send samples",
        passes="it holds at a constant mix of those who send samples",
        codes={"senders": Code("more or fewer samples came from {0}: at a constant mix it hardly rises")},
    ),
    Step(
        "request_mix",
        "detect",
        "Did other types of requests come?",
        measures="its rise at the usual mix of requests, by what their mix made of it",
        passes="it holds at the usual mix of requests",
        codes={"types": Code("more or fewer requests of {0} came: at their usual mix it hardly rises")},
    ),
    Step(
        "release_costs",
        "releases",
        "Do requests cost more in a new release?",
        source="Liao et al. 2021, §5",
        measures="share of the metric that the change makes, against the least that matters",
        measures_passed="share of the metric that the change makes, with its standard error",
        passes="requests cost more in the new release",
        codes=RELEASES,
        ablatable=False,
    ),
    Step(
        "workload",
        "filter",
        "Does the worker know the workload?",
        codes={"unknown": Code("this worker does not know workload {0}")},
        ablatable=False,
    ),
    Step(
        "went_away",
        "filter",
        "Does it last?",
        source="FBDetect §5.4.3",
        measures="by the deciding term of the went-away predicate",
        passes="the change is still there at the end of the scan",
        kinds=_NOT_SLOW,
        codes={
            "no_series": _NO_SERIES,
            "new_pattern": Code(passed="new pattern"),
            "stays": Code(passed="significant, lasting and still there"),
            "unconfirmed": Code("no data yet that could confirm it"),
            "returned": Code("returned to the level before"),
            "rose_anew": Code("returned to the level before, and rose anew later"),
            "within_percentiles": Code("no higher than the history's high percentiles"),
            "valid_letters": Code("below the history's highest valid SAX letter"),
            "small_trend": Code("the trend rises too little"),
            "no_trend": Code("no upward trend"),
        },
    ),
    Step(
        "seasonality",
        "filter",
        "Is it the time of the day or of the week?",
        source="§5.4.4",
        measures="pseudo z-score of what is left without the season",
        passes="no season accounts for it",
        kinds=_NOT_SLOW,
        optional=True,
        codes={
            "no_series": _NO_SERIES,
            "seasonal": Code("comes back every day or week"),
            "no_season": Code(passed="no season accounts for it"),
        },
    ),
    Step(
        "threshold",
        "filter",
        "Is it large enough to matter?",
        source="§5.2, Table 3",
        measures="size of the change, against the workload's threshold",
        passes="it is at least as large as the threshold",
        codes={
            "absolute": Code("absolute change below the threshold"),
            "relative": Code("relative change below the threshold"),
        },
    ),
    Step(
        "significance",
        "filter",
        "Could it be chance among so many series?",
        measures="change points like it that steady series yield per scan",
        passes="chance hardly ever makes one like it in a scan of this size",
        codes={"chance": Code("a scan of this size finds such by chance")},
    ),
    Step(
        "same_regression",
        "filter",
        "Is it known already?",
        source="SameRegressionMerger, Table 5",
        measures="how far it goes beyond what an earlier scan passed on",
        passes="it goes well beyond what an earlier scan passed on",
        passes_alone="no earlier scan passed it on",
        codes={
            "duplicate": Code("same regression as in an earlier scan"),
            "escalated": Code(
                "a regression of an earlier scan that has escalated: it goes beyond what was reported; as it "
                "has risen steadily it updates the known one"
            ),
        },
    ),
    Step(
        "within_strata",
        "dedup",
        "Did it rise within those who send its samples?",
        measures="share of its rise that is left with each who sends samples held against itself",
        passes="it rose within those who send its samples",
        codes={
            "usual": Code("each of those who send its samples has it as before: more came from some of them"),
        },
    ),
    Step(
        "explanation",
        "dedup",
        "What are the few causes that turned the stacks before into those after?",
        measures="share of its rise that is its own cost or that it is called more often",
        passes="its cause is known",
        passes_alone="no stacks to explain it by",
        codes=EXPLAINED,
        drops=False,
    ),
    Step(
        "traffic_shift",
        "dedup",
        "Did more traffic come to its callers?",
        measures="share of its rise that is its own: 0 as all else that its callers do, 1 without them",
        passes="what its callers do besides it did not rise as much",
        passes_alone="no callers to compare with",
        codes={
            "callers": Code("more traffic to its callers: what they do besides it rose as much"),
            "requests": Code("another mix of requests: other request types moved as far at the same time"),
        },
    ),
    Step(
        "som_dedup",
        "dedup",
        "Does another series of the scan explain it?",
        source="§5.4.7",
        measures="share of its rise in the other's stacks",
        measures_passed="candidates of its group, itself counted",
        passes="it stands for its group",
        codes=LINKS,
    ),
    Step(
        "cost_shift",
        "dedup",
        "Did cost only move?",
        source="§5.4.6",
        measures="share of the rise of the series by which its cost domain rose: 0 moved, 1 did not",
        passes="the cost of its domain rose with it",
        passes_alone="no domain to compare with",
        codes={"shifted": Code("cost shift: {0}")},
        judges_domains=True,
    ),
    Step(
        "pairwise_dedup",
        "dedup",
        "Does a regression of an earlier scan explain it?",
        source="§5.4.8",
        measures="share of its rise in the stacks of one reported before",
        passes="none of what it was compared with has the same cause",
        codes=LINKS,
    ),
    Step(
        "one_stratum",
        "dedup",
        "Does it hold everywhere, or with one label alone?",
        passes="it holds wherever samples come from",
        codes={"only": Code(passed="only {0}")},
        drops=False,
        event_field="strata",
        ablatable=False,
    ),
    _part("inserted_frames", "Are stacks the same but for frames put into them?", "dedup"),
    _part("same_time", "Are their change points near enough in time to be one?", "dedup"),
    _part("late_callers", "Does it rise through a reported regression, however much later?", "dedup"),
    _part("onset_order", "Had the reported regression risen before this step began?", "dedup"),
    _part("cause", "Do both rise through one subroutine, or what one change modified?", "dedup", COMMON),
    _part("named_packages", "Does a change that names no subroutine name a package of it?", "dedup"),
    _part("caller", "Is a caller of it called more often?", "dedup", COMMON),
    _part("release", "Did so many changes of one deployment make them rise?", "dedup", SURE),
    _part("stacks", "Do both rise in the same stacks?", "dedup", STACKS),
    _part("correlation", "Do they move together?", "dedup", "correlation of the two series"),
    _part("metric_id", "Are their names similar?", "dedup", "similarity of the two names"),
    _part(
        "onset",
        "Does a metric get worse when another regression begins, by more than chance?",
        "dedup",
        "how sure it is that both do not begin at one time by chance",
    ),
    _part("residual", "Is it a change point without what rises below it?", "dedup"),
    _factor("attribution", "share of the regression from stacks that hold a subroutine which it modifies"),
    _factor("recency", "how well the rise fits the time of the deployment"),
    _factor("text", "similarity of its text to the regression's names"),
    _factor("correlation", "of the series with a set-up metric which it names"),
    _factor("trial", "what trials before its release say, in nats"),
    _part(
        "setup_explanation",
        "Does a set-up metric explain it better than the step of any change?",
        "rootcause",
        "correlation of the series with it, and the share of the rise that its own change makes",
    ),
    Step(
        "expected",
        "rootcause",
        "Was this cost announced?",
        measures="rise of all regressions that the cost was announced for, against that cost and the error",
        codes={
            "within": Code("within the cost that {0} announced"),
            "beyond": Code(passed="beyond the cost that {0} announced"),
            "removed": Code(passed="was within the cost that {0} announced, which was taken back"),
        },
        ablatable=False,
    ),
    Step(
        "muted",
        "rootcause",
        "Has somebody muted it?",
        measures="largest rise of a member beside what is muted, against its noise",
        codes={
            "muted": Code("muted by {1} ({0})"),
            "others": Code(passed="muted by {1} ({0}), but {2} rises beside it"),
            "ended": Code(passed="was muted by {1} ({0}), and is still there as the mute has ended"),
        },
        ablatable=False,
    ),
)
"""Every judging step, in the order in which they run."""

BY_KEY: Mapping[str, Step] = {step.key: step for step in STEPS}

_DROPPING: tuple[Step, ...] = tuple(step for step in STEPS if step.drops and step.ablatable)

OPTIONAL: tuple[str, ...] = tuple(step.key for step in STEPS if step.optional)
"""Keys of the steps that only workloads ask which name them in ``steps``."""

FUNNEL: tuple[str, ...] = tuple(step.key for step in _DROPPING if not step.optional)
"""Keys of the steps that drop candidates of every workload, in their order (FBDetect Table 5)."""

FILTERS: tuple[Step, ...] = tuple(step for step in _DROPPING if step.stage == "filter")
"""The filters, each in the module of ``pipeline.analysis.filters`` that its key names."""

DETECTION: tuple[str, ...] = tuple(step.key for step in STEPS if step.stage == "detect")
"""Keys of all that the detect stage asks: without one of them, it has to run again."""

DETECTOR_PARTS: tuple[str, ...] = tuple(key for key in DETECTION if key not in FUNNEL)
"""Keys of the short-term detector's parts.

Without ``noise_at_scale`` noise is that of single windows; without ``count_likelihood`` it is Gaussian.
"""

CONSTRAINTS: tuple[str, ...] = tuple(
    step.key for step in STEPS if step.stage == "dedup" and not step.drops and not step.optional
)
"""Keys of what deduplication asks of pairs: constraints, features and the residual."""

FACTORS: tuple[str, ...] = tuple(step.key for step in STEPS if step.factor)
"""Keys of the evidence by which root-cause candidates are ranked."""

CAUSE_PARTS: tuple[str, ...] = tuple(
    step.key for step in STEPS if step.stage == "rootcause" and not step.drops and not step.factor
)
"""Keys of what else is asked about causes."""

LAST: tuple[str, ...] = tuple(step.key for step in STEPS if step.drops and step.stage == "rootcause")
"""Keys of the steps of the last stage that drop candidates: what people said of them."""

ABLATABLE: tuple[str, ...] = (*FUNNEL, *CONSTRAINTS, *DETECTOR_PARTS, *FACTORS, *CAUSE_PARTS)
"""Keys of everything that can be left out to measure what it is worth."""

_UNKNOWN = Step("", "filter", "")
_VERBATIM = Code("{0}", "{0}")
_WORDLESS = Code()


def funnel_steps(dropping: Collection[str]) -> tuple[str, ...]:
    """Return keys of the steps of a funnel in their order: ``FUNNEL``, and the others of some keys."""
    regular = (step.key for step in _DROPPING if not step.optional or step.key in dropping)
    return tuple(dict.fromkeys((*regular, *dropping)))


def step_of(key: str) -> Step:
    """Return a step by its key; one without words for what another version wrote."""
    return BY_KEY.get(key, _UNKNOWN)


def code_of(decision: Decision) -> Code:
    """Return what a decision's code says; an empty one for codes that are not known."""
    if decision.code == TEXT:
        return _VERBATIM
    return step_of(decision.step).codes.get(decision.code, _WORDLESS)


def sentence(decision: Decision) -> str:
    """Return a decision's reason as a sentence; empty where it passed without a remark.

    A second subject without words of its own is the event of an earlier scan that the candidate has become
    part of.
    """
    if not decision.code:  # most of those that passed: asked first, for speed
        return ""
    code, subjects = code_of(decision), decision.subjects
    text = code.passed if decision.passed else code.dropped
    if not text:
        return ""
    if "{1}" in text:
        return _FIELD.sub(
            lambda found: subjects[int(found[1])] if int(found[1]) < len(subjects) else "?", text
        )
    if "{0}" in text:
        text = text.replace("{0}", subjects[0] if subjects else "another series")
    return f"{text}, reported before" if len(subjects) > 1 else text


_FIELD = re.compile(r"\{(\d)\}")
