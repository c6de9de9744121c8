"""Records of what simulated fleets report: events and ledgers, held against those of today's code.

``python -m tests.support.recorded_fleets check`` compares all of them; with ``--only NAME`` one of them.
``record`` writes them anew, after a change that is meant, and ``steps`` prints which steps of the registry
they show. Ids, codes, subjects and names must be the same; numbers may differ by their rounding. Sentences
of decisions are left out: codes make them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from loadgen.fleet.simulate import simulate
from pipeline.backtest.dataset import Dataset
from pipeline.backtest.funnel import count_funnel, funnel_to_json
from pipeline.backtest.run import run_backtest
from pipeline.messages.ledger import dropped_entries, entry_to_json, reported_entries
from pipeline.model.steps import CONSTRAINTS, FACTORS, STEPS
from pipeline.settings.config import Settings
from pipeline.settings.gates import write_gates
from tests.support.fleet_choice import FLEETS, RecordedFleet
from tests.support.recorded_releases import recorded_releases
from tests.support.silenced_fleet import gates_of, silences_of

Json = Any
Record = Mapping[str, Any]
"""Events, rows of the ledger and funnels, as JSON."""

FOLDER = Path(__file__).parents[1] / "golden" / "fleets"
RELEASES = "releases"
"""Name of the record of releases that are compared by their requests."""

NAMES: tuple[str, ...] = (*(fleet.name for fleet in FLEETS), RELEASES)

RELATIVE, ABSOLUTE = 1e-9, 1e-12
"""By how much numbers may differ. A gCPU ratio is about 1e-4, so that 1e-9 would be much of it."""

DIGITS = 12
LINES = 20
"""Most lines that are printed of a fleet's differences."""


def observe(name: str) -> Record:
    """Return the report on a fleet by today's code."""
    if name == RELEASES:
        return _rounded_record(recorded_releases())
    (fleet,) = (fleet for fleet in FLEETS if fleet.name == name)
    record: dict[str, list[Json]] = {"events": [], "ledger": [], "funnels": []}
    for scenario in fleet.scenarios():
        _observe_service(fleet, simulate(scenario, fleet.seed).dataset, record)
    return _rounded_record(record)


def _observe_service(fleet: RecordedFleet, dataset: Dataset, record: Mapping[str, list[Json]]) -> None:
    if fleet.is_silenced:
        dataset = replace(dataset, silences=silences_of(dataset))
    with tempfile.TemporaryDirectory() as folder:
        gates = None
        if fleet.has_gates:
            gates = Path(folder) / "gates.yaml"
            gates.write_text(write_gates(gates_of(dataset)), encoding="utf-8")
        backtest = run_backtest(dataset, fleet.chosen_workloads(), settings=Settings(gates=gates))
    record["events"].extend(backtest.events)
    for scan in backtest.scans:
        record["ledger"].extend(map(entry_to_json, (*dropped_entries(scan), *reported_entries(scan))))
    record["funnels"].append({"service": dataset.service, **funnel_to_json(count_funnel(backtest.scans))})


def _rounded_record(record: Record) -> Record:
    return {part: _rounded(rows) for part, rows in record.items()}


def _rounded(value: Json) -> Json:
    """Return JSON with floats of ``DIGITS`` digits, without the sentences of decisions."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        is_decision = "step" in value and "statistic" in value
        return {key: _rounded(part) for key, part in value.items() if not (is_decision and key == "reason")}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return value


def write_record(record: Record, path: Path) -> None:
    """Write a record; the same record gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def read_record(name: str) -> Record:
    """Return the recorded report on a fleet."""
    record: Record = json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
    return record


def differences(before: Record, after: Record) -> list[str]:
    """Return one line for each field that differs, and for each row that is missing or new."""
    lines: list[str] = []
    for part in sorted({*before, *after}):
        old, new = _by_key(before.get(part, ())), _by_key(after.get(part, ()))
        lines += [f"{part}: {key}: no longer there" for key in old if key not in new]
        lines += [f"{part}: {key}: new" for key in new if key not in old]
        common = [key for key in old if key in new]
        if common != [key for key in new if key in old]:
            lines.append(f"{part}: come in another order")
        for key in common:
            lines += [f"{part}: {key}: {line}" for line in _changed("", old[key], new[key])]
    return lines


def _by_key(rows: Iterable[Mapping[str, Json]]) -> dict[str, Mapping[str, Json]]:
    """Return rows by their key: id, metric, time, and step or type."""
    counted: Counter[str] = Counter()
    keyed = {}
    for row in rows:
        values = (row.get(key) for key in ("id", "type", "service", "subject", "metric", "time", "scan_end"))
        key = " ".join(str(value).removeprefix("smidgen.regression.") for value in values if value)
        counted[key] += 1
        keyed[key if counted[key] == 1 else f"{key} ({counted[key]})"] = row
    return keyed


def _changed(path: str, before: Json, after: Json) -> Iterator[str]:
    """Yield ``field: before -> after`` for every leaf that differs."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            inner = f"{path}.{key}" if path else key
            yield from _changed(inner, before.get(key, _Absent), after.get(key, _Absent))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, pair in enumerate(zip(before, after, strict=True)):
            yield from _changed(f"{path}[{index}]", *pair)
    elif not _same(before, after):
        yield f"{path}: {_shown(before)} -> {_shown(after)}"


class _Absent:
    """Placeholder for an absent key."""


def _same(before: Json, after: Json) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (before, after))
    if numbers:
        return math.isclose(before, after, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return type(before) is type(after) and bool(before == after)


def _shown(value: Json) -> str:
    if value is _Absent:
        return "absent"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def shortened(name: str, lines: Sequence[str]) -> str:
    """Return the differences of a fleet as a text of at most ``LINES`` lines."""
    shown = list(lines[: LINES - 1])
    if len(lines) > len(shown):
        shown[-1] = f"... and {len(lines) - len(shown) + 1} more"
    return "\n".join([f"{name}: {len(lines)} differences", *(f"  {line}" for line in shown)])


def compare(name: str) -> list[str]:
    """Return the differences of a fleet's report from its record; empty if there are none."""
    return differences(read_record(name), observe(name))


def shown_steps(records: Iterable[Record]) -> tuple[Counter[str], tuple[str, ...]]:
    """Return the number of decisions per ``step/code`` in records, and the steps without any.

    Constraints and factors appear in answers that name them. Parts of detection and of stages that leave no
    trace count as steps without decisions.
    """
    shown: Counter[str] = Counter()
    seen: set[str] = set()
    for row in _objects(list(records)):
        if isinstance(row.get("step"), str) and "statistic" in row:
            shown[f"{row['step']}/{row.get('code') or '-'}"] += 1
            seen |= {row["step"], *(set(CONSTRAINTS) & {row.get("code")})}
        for name in row.get("factors") or ():
            shown[f"factor_{name}"] += 1
            seen |= {f"factor_{name}"} & set(FACTORS)
    return shown, tuple(step.key for step in STEPS if step.key not in seen)


def _objects(value: Json) -> Iterator[Mapping[str, Json]]:
    if isinstance(value, Mapping):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _objects(part)


def _print_steps(names: Sequence[str]) -> None:
    shown, missing = shown_steps(map(read_record, names))
    for step, count in sorted(shown.items()):
        print(f"{count:7,} {step}")
    print(f"{len(STEPS) - len(missing)} of {len(STEPS)} steps; not visible: {', '.join(missing)}")


def main() -> int:
    """Record or check; the exit code is 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("record", "check", "steps"))
    parser.add_argument("--only", choices=NAMES, action="append", help="may be repeated")
    options = parser.parse_args()
    names = options.only or NAMES
    if options.action == "steps":
        _print_steps(names)
        return 0
    differing = 0
    for name in names:
        began = time.process_time()
        record = observe(name)
        seconds = time.process_time() - began
        size = f"{len(record['events'])} events, {len(record['ledger'])} ledger rows, {seconds:.1f} s"
        if options.action == "record":
            write_record(record, FOLDER / f"{name}.json.gz")
            print(f"{name}: recorded, {size}", flush=True)
        elif lines := differences(read_record(name), record):
            differing += 1
            print(f"{shortened(name, lines)}\n  ({size})", flush=True)
        else:
            print(f"{name}: as recorded, {size}", flush=True)
    return int(differing > 0)


if __name__ == "__main__":
    raise SystemExit(main())
