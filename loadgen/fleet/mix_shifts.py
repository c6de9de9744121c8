"""Shifts of the mix in a scenario: traffic between endpoints, and the truth about all shifts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loadgen.fleet.inject.effects import EndpointEffect
from loadgen.fleet.inject.site import Site
from loadgen.fleet.scenario import Scenario
from loadgen.fleet.streams import Streams


def traffic_shifts(scenario: Scenario, site: Site, streams: Streams) -> list[EndpointEffect]:
    """Draw the endpoints between which traffic moves; the second gains as many samples as the first loses."""
    effects = []
    for number, shift in enumerate(scenario.load.shifts):
        begin, length_s = site.timeline.at(shift.at), shift.length_s
        if length_s is None:
            profile = site.timeline.step(begin, shift.over_s)
        else:
            ramp_s, end = shift.over_s, begin + length_s
            profile = site.timeline.pulse(begin, end, rise_s=ramp_s, fall_s=ramp_s)
        chosen = streams.of("shift", str(number)).permutation(len(site.graph.endpoints))[:2]
        losing, gaining = (site.graph.endpoints[int(index)] for index in chosen)
        gain = shift.share * site.share(f"endpoint={losing}") / site.share(f"endpoint={gaining}")
        effects.append(EndpointEffect(losing, -shift.share, profile))
        effects.append(EndpointEffect(gaining, gain, profile))
    return effects


def mix_rows(scenario: Scenario, site: Site) -> list[Mapping[str, Any]]:
    """Return the truth about every shift of senders or of their shares; no shift should be reported."""
    return [
        {
            "id": f"{name}-{number:03d}",
            "kind": "mix_shift",
            "subkind": name,
            "service": scenario.service,
            "subroutines": [],
            "metric_kind": "subroutine",
            "start": start,
            "end": end,
            **({} if ramp_end is None else {"ramp_end": ramp_end}),
            "change": None,
            "strata": strata,
            "series": [],
        }
        for name, number, start, end, ramp_end, strata in _shifts(scenario, site)
    ]


def _shifts(
    scenario: Scenario, site: Site
) -> Iterator[tuple[str, int, float, float | None, float | None, dict[str, str]]]:
    """Yield name, number, start, end, end of the ramp and labels of each shift."""
    at, spec = site.timeline.at, scenario.hosts
    for number, shift in enumerate(scenario.load.shifts, start=1):
        begin, length_s = at(shift.at), shift.length_s
        end, ramp_end = (begin + length_s, None) if length_s else (None, begin + shift.over_s)
        yield "traffic", number, begin, end, ramp_end, {}
    if spec is None:
        return
    for number, drain in enumerate(spec.drains, start=1):
        end = at(drain.at) + drain.length_s
        yield "drain", number, at(drain.at), end, None, {"region": drain.region}
    for number, change in enumerate(spec.rates, start=1):
        if change.at > 0:
            yield "rate", number, at(change.at), None, at(change.at) + change.over_s, {}
    for number, arrival in enumerate(spec.arrivals, start=1):
        ramp_end = at(arrival.at) + arrival.over_s
        yield "arrival", number, at(arrival.at), None, ramp_end, {"machine": arrival.machine}
