"""Events of flag services as flips: LaunchDarkly, Unleash, Flagsmith, GitLab, and OpenFeature's own.

The payloads are described at https://launchdarkly.com/docs/api/webhooks,
https://docs.getunleash.io/reference/integrations/webhook,
https://docs.flagsmith.com/administration-and-security/platform-configuration/environment-settings,
https://docs.gitlab.com/user/project/integrations/webhook_events/#feature-flag-events, and
https://openfeature.dev/specification/sections/events and https://flagd.dev/reference/specifications/protos.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agents.source.gates.flips import OFF, ON, Flip
from agents.webhooks.forge_event import moment, optional_section, section, text
from pipeline.messages import fields
from pipeline.model.errors import InvalidMessage

MOST_GATES = 1000
"""Most gates of one event."""

_RESOURCE = re.compile(r"proj/([^:;]+):env/([^:;]+):flag/([^:;]+)")
_NAMING = frozenset(
    {"name", "description", "tags", "maintainer", "maintainerid", "customproperties", "temporary"}
)
"""Updates of LaunchDarkly that are no flip: the part of an action's name after "update"."""

_UNLEASH = (
    *("feature-environment-enabled", "feature-environment-disabled", "feature-environment-variants-updated"),
    *("feature-strategy-add", "feature-strategy-update", "feature-strategy-remove"),
    *("feature-variants-updated", "feature-archived", "feature-revived"),
    *("segment-updated",),
)
_CONFIGURATION_CHANGED = frozenset(
    {
        "provider_configuration_changed",
        "configuration_changed",
        "configuration_change",
        "configurationchanged",
    }
)


def read_launchdarkly(payload: Mapping[str, Any], now: float) -> list[Flip]:
    """Return the flips of an entry of LaunchDarkly's audit log; none of one that changes no flag's value."""
    if text(payload, "kind") != "flag":
        return []
    date = payload.get("date")
    if isinstance(date, bool) or not isinstance(date, int | float):
        raise InvalidMessage("date: should be milliseconds since the epoch")
    member = optional_section(payload, "member")
    author = " ".join(filter(None, (text(member, "firstName"), text(member, "lastName"))))
    actions: dict[tuple[str, str, str], str] = {}
    for access in fields.listing(payload, "accesses", optional=True)[:MOST_GATES]:
        if not isinstance(access, dict):
            raise InvalidMessage("accesses: should be objects")
        action, where = text(access, "action"), _RESOURCE.match(text(access, "resource"))
        if where and _flips(action):
            project, environment, gate = where.groups()
            actions[project, environment, gate] = action
    title = text(payload, "titleVerb")
    return [
        Flip(
            gate=gate,
            time=_time({"date": date / 1000}, now, "date"),
            after=_on_or_off(title) if action == "updateOn" else action,
            author=author or text(member, "email"),
            note=text(payload, "comment") or text(payload, "description"),
            project=project,
            environment=environment,
            id=text(payload, "_id"),
        )
        for (project, environment, gate), action in actions.items()
    ]


def _flips(action: str) -> bool:
    """Return whether an action may change what a flag evaluates to."""
    return action.startswith(("update", "delete", "revert")) and action[6:].lower() not in _NAMING


def _on_or_off(verb: str) -> str:
    return ON if "turned on" in verb.lower() else OFF if "turned off" in verb.lower() else "on or off"


def read_unleash(payload: Mapping[str, Any], now: float) -> list[Flip]:
    """Return the flip of an event of Unleash, in its default body; none of one that flips nothing."""
    kind = fields.text(payload, "type")
    if kind not in _UNLEASH:
        return []
    gate = text(payload, "featureName") or text(optional_section(payload, "data"), "name")
    if not gate:
        return []
    states = {"feature-environment-enabled": ON, "feature-environment-disabled": OFF, "feature-archived": OFF}
    return [
        Flip(
            gate=gate,
            time=_time(payload, now, "createdAt"),
            after=states.get(kind, kind.removeprefix("feature-").replace("-", " ")),
            author=text(payload, "createdBy"),
            project=text(payload, "project"),
            environment=text(payload, "environment"),
            id=_identity(payload),
        )
    ]


def _identity(payload: Mapping[str, Any]) -> str:
    """Return an event's id, a text or a number; empty where there is none, then time and state make it."""
    value = payload.get("id")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return text(payload, "id")[:100]


def read_flagsmith(payload: Mapping[str, Any], now: float) -> list[Flip]:
    """Return the flip of an environment's webhook of Flagsmith; none of another event."""
    if fields.text(payload, "event_type") not in ("FLAG_UPDATED", "FLAG_DELETED"):
        return []
    data = section(payload, "data")
    new, old = optional_section(data, "new_state"), optional_section(data, "previous_state")
    state = new or old
    feature, environment = section(state, "feature"), optional_section(state, "environment")
    after = _flagsmith_state(new) if new else "absent"
    return [
        Flip(
            gate=fields.text(feature, "name"),
            time=_time(data, now, "timestamp"),
            before=_flagsmith_state(old) if old else "",
            after=after,
            author=text(data, "changed_by"),
            project=text(optional_section(feature, "project"), "name"),
            environment=text(environment, "name"),
        )
    ]


def _flagsmith_state(state: Mapping[str, Any]) -> str:
    if state.get("enabled") is not True:
        return OFF
    value = state.get("feature_state_value")
    return ON if value in (None, "") else f"on ({str(value)[:100]})"


def read_gitlab_flag(payload: Mapping[str, Any], now: float) -> list[Flip]:
    """Return the flip of a feature flag event of GitLab, which does not say when it was."""
    flag, user = section(payload, "object_attributes"), optional_section(payload, "user")
    return [
        Flip(
            gate=fields.text(flag, "name"),
            time=now,
            after=ON if flag.get("active") is True else OFF,
            author=text(user, "name"),
            note=text(flag, "description"),
            project=text(optional_section(payload, "project"), "path_with_namespace"),
        )
    ]


def read_openfeature(payload: Mapping[str, Any], now: float) -> list[Flip]:
    """Return the flips of OpenFeature's event of a changed configuration, or of flagd's; none of others.

    Both only name the flags that changed. A CloudEvent is read by its data.
    """
    if "specversion" in payload:
        payload = section(payload, "data")
    kind = str(payload.get("type") or payload.get("event") or "").lower().replace("-", "_")
    if kind not in _CONFIGURATION_CHANGED:
        return []
    details = optional_section(payload, "details") or optional_section(payload, "eventDetails") or payload
    named = details.get("flagsChanged", details.get("flags_changed"))
    if named is None:  # flagd: {"data": {"flags": {gate: {"type": "update", …}}}}
        named = list(optional_section(optional_section(payload, "data"), "flags"))
    gates = fields.texts({"flagsChanged": named}, "flagsChanged")
    if len(gates) > MOST_GATES:
        raise InvalidMessage(f"flagsChanged: more than {MOST_GATES}")
    return [
        Flip(
            gate=gate,
            time=_time(payload, now, "time", "timestamp"),
            note=text(details, "message"),
            project=text(payload, "providerName") or text(details, "providerName"),
        )
        for gate in gates
        if gate
    ]


def _time(payload: Mapping[str, Any], now: float, *names: str) -> float:
    """Return the time of an event, now if it states none or one in the future."""
    time = moment(payload, *names)
    return now if time is None else min(time, now)


READERS: Mapping[str, Callable[[Mapping[str, Any], float], Sequence[Flip]]] = {
    "launchdarkly": read_launchdarkly,
    "unleash": read_unleash,
    "flagsmith": read_flagsmith,
    "openfeature": read_openfeature,
}
"""Kind of flag service → reader of its events; GitLab's come with its other events."""
