"""Issues of alerts that somebody closes: what it says, of what, and when it says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from agents.webhooks.answers import WebhookAnswer
from agents.webhooks.closings import CLOSING_EVENTS, YIELDS_S, Closing, read_closing, said_by_closing
from agents.webhooks.mapping import Forge
from agents.webhooks.replies import Said
from pipeline.analysis.feedback.labeller import Answers, label
from pipeline.messages.records import columns_of
from pipeline.messages.verdicts import verdict_to_row
from pipeline.model import Verdict, VerdictKind
from pipeline.model.errors import InvalidMessage
from pipeline.storage.arrays import ArrayStore
from tests.unit.agents.webhooks.test_receiver import NOW
from tests.unit.agents.webhooks.test_replies import EVENT, World, alerted, hub_reply

CLOSED = 1_700_000_000.0
AT = "2023-11-14T22:13:20Z"
OF_PEOPLE = {"number": 9, "closed_at": AT}
SAID_AT = CLOSED - YIELDS_S


def hub_closing(reason: str | None, *labels: str, **own: Any) -> dict[str, Any]:
    """What GitHub sends of an issue that was closed, as far as it is read."""
    issue = {"number": 7, "closed_at": AT, "labels": [{"name": name} for name in ("smidgen", *labels)]}
    return {
        "action": "closed",
        "issue": {**issue, "state_reason": reason},
        "sender": {"login": "ada", "type": "User"},
        "repository": {"full_name": "acme/shop"},
        **own,
    }


def lab_closing(*labels: str, username: str = "grace", **own: Any) -> dict[str, Any]:
    """What GitLab sends of an issue that was closed."""
    return {
        "object_kind": "issue",
        "user": {"username": username},
        "project": {"path_with_namespace": "acme/web/shop"},
        "object_attributes": {"iid": 7, "action": "close", "closed_at": "2023-11-14 22:13:20 UTC", **own},
        "labels": [{"title": name} for name in labels],
    }


@pytest.mark.parametrize(
    ("reason", "labels", "said"),
    [
        ("completed", (), Said("fixed", comment="closed as completed")),
        ("not planned", (), Said("acknowledged", comment="closed as not planned")),
        ("duplicate", (), Said("acknowledged", comment="closed as duplicate")),
        ("", (), Said("acknowledged", comment="closed")),
        ("completed", ("perf",), Said("fixed", comment="closed as completed, perf")),
        ("completed", ("False_Positive",), Said("false", comment="closed as completed, False_Positive")),
        ("", ("why::cost shift",), Said("cost-shift", comment="closed, why::cost shift")),
        ("", ("expected",), Said("expected", comment="closed, expected")),
        ("", ("duplicate",), Said("acknowledged", comment="closed, duplicate")),
    ],
)  # fmt: skip
def test_a_label_says_why_else_the_reason(reason: str, labels: tuple[str, ...], said: Said) -> None:
    assert said_by_closing(Closing("7", reason, labels, "ada", "", CLOSED)) == said


def test_labels_that_say_different_things_are_unclear() -> None:
    with pytest.raises(InvalidMessage, match="labels say expected and false"):
        said_by_closing(Closing("7", "", ("false", "expected"), "ada", "", CLOSED))


@pytest.mark.parametrize(
    ("reason", "label_name", "status"),
    [
        ("not_planned", "wontfix", "will not fix"),
        ("duplicate", "", "duplicate"),
        ("not_planned", "noise, flaky host", "false positive"),
        ("not_planned", "", "review"),
    ],
)
def test_what_is_no_verdict_is_words_for_the_labeller(reason: str, label_name: str, status: str) -> None:
    closing = read_closing("github", hub_closing(reason, *filter(None, [label_name])))
    assert closing is not None
    said = said_by_closing(closing)
    assert said.verdict == "acknowledged"
    assert label(Answers((said.comment,), said.verdict)).status == status


def test_forges_say_who_closed_what() -> None:
    assert read_closing("github", hub_closing("not_planned")) == Closing(
        "7", "not planned", ("smidgen",), "ada", "COLLABORATOR", CLOSED
    )
    assert read_closing("gitlab", lab_closing("perf")) == Closing("7", "", ("perf",), "grace", "", CLOSED)
    assert read_closing("github", hub_closing(None, sender={"login": "smidgen[bot]", "type": "Bot"})) is None
    assert read_closing("github", {**hub_closing(None), "action": "labeled"}) is None
    assert read_closing("gitlab", lab_closing(action="update")) is None
    for payload in ({**hub_closing(None), "issue": {"number": 7}}, {**hub_closing(None), "issue": []}):
        with pytest.raises(InvalidMessage):
            read_closing("github", payload)


def with_state(said: VerdictKind | None, *, resolved: bool = False) -> ArrayStore:
    """Return a store with an alert's issue, and what is known of its event."""
    store = alerted((EVENT, "shop"))
    if said:
        verdict = Verdict(EVENT, "shop", said, CLOSED - 900.0, "grace")
        store.insert("verdicts", columns_of([verdict_to_row(verdict)]))
    if resolved:
        about = {"id": "u1", "service": "shop", "time": NOW - 500.0, "regression": EVENT, "type": "resolved"}
        series = {"workload": "live", "metric_kind": "subroutine", "metric": "shop.total", "event": "{}"}
        levels = {"before": 0.06, "after": 0.08, "level": 0.06, "share_remaining": 0.0}
        store.insert("updates", columns_of([{**about, **series, **levels}]))
    return store


def close(world: World, *payloads: Mapping[str, Any], forge: Forge = "github") -> list[WebhookAnswer]:
    return partial(world, events=CLOSING_EVENTS)(*payloads, forge=forge)


@pytest.mark.parametrize(("forge", "author"), [("github", "ada"), ("gitlab", "grace")])
def test_a_closing_becomes_a_verdict_once(forge: Forge, author: str) -> None:
    world = World(with_state(None))
    payload = hub_closing("completed", "false") if forge == "github" else lab_closing("false")
    comment = "closed as completed, smidgen, false" if forge == "github" else "closed, false"
    first, again = close(world, payload, payload, forge=forge)
    assert (first.status, again.text) == (200, "already published")
    assert world.said == [Verdict(EVENT, "shop", "false", SAID_AT, author, comment=comment)]
    assert world.counts == {"answered": 1}


@pytest.mark.parametrize(
    ("state", "payload", "verdict"),
    [
        ("acknowledged", hub_closing("completed"), "fixed"),
        ("true", hub_closing("completed"), "fixed"),
        ("false", hub_closing("completed"), None),
        ("fixed", hub_closing("completed"), None),
        ("true", hub_closing("not_planned"), None),
        ("expected", hub_closing("not_planned"), None),
        ("true", hub_closing("not_planned", "false positive"), "false"),
    ],
)
def test_a_closing_takes_back_no_words(
    state: VerdictKind, payload: dict[str, Any], verdict: str | None
) -> None:
    world = World(with_state(state))
    close(world, payload)
    assert [one.verdict for one in world.said] == ([verdict] if verdict else [])


def test_what_is_resolved_is_closed_by_whoever_sees_it() -> None:
    world = World(with_state(None, resolved=True))
    close(world, hub_closing("completed"), hub_closing("completed", "expected"))
    assert [one.verdict for one in world.said] == ["expected"]


def test_words_with_a_closing_win_in_whichever_order_they_come() -> None:
    world = World(with_state(None))
    close(world, hub_closing("completed"))
    world(hub_reply("false: load test"))
    by_time = sorted(world.said, key=lambda one: one.time)
    assert [one.verdict for one in by_time] == ["fixed", "false"]


@pytest.mark.parametrize(
    ("forge", "payload", "outcome"),
    [
        pytest.param("github", hub_closing("", issue=OF_PEOPLE), "other", id="of people"),
        pytest.param("github", hub_closing(None, "true", "false"), "unclear", id="two labels"),
        pytest.param("gitlab", lab_closing("false", username="ada"), "refused", id="not listed"),
    ],
)  # fmt: skip
def test_what_is_no_answer_publishes_nothing(forge: Forge, payload: dict[str, Any], outcome: str) -> None:
    world = World(with_state(None))
    (answer,) = close(world, payload, forge=forge)
    assert (answer.status, world.said, world.counts) == (200, [], {outcome: 1})


@pytest.mark.parametrize(("association", "may"), [("NONE", False), ("MEMBER", True)])
def test_who_opened_an_issue_may_close_it_and_answers_only_as_a_collaborator(
    association: str, may: bool
) -> None:
    payload = hub_closing("completed", "false")
    own = {"user": {"login": "ada"}, "author_association": association}
    world = World(with_state(None))
    close(world, {**payload, "issue": {**payload["issue"], **own}})
    assert world.counts == {"answered" if may else "refused": 1}


def test_a_recorded_closing_is_refused() -> None:
    world = World(with_state(None))
    issue = {"number": 7, "closed_at": "2023-11-01T00:00:00Z"}
    assert [one.status for one in close(world, hub_closing("completed", issue=issue))] == [403]
    assert world.said == []
