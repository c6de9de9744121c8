"""JSON and JSON lines as tables, in the shapes in which programs write series."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from pipeline.backtest.seriesfile.content import Content
from pipeline.backtest.seriesfile.table import Cells, Table, known_name, named
from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.model.errors import ConfigError
from pipeline.model.units import counted


@dataclass(frozen=True, slots=True)
class Shaped:
    """The content of JSON of a known shape, as columns with one value per row."""

    columns: Mapping[str, Sequence[Any]]
    sparse: bool = False  # True if a missing value is no point
    assumed: tuple[str, ...] = ()


class WrongShape(Exception):
    """JSON of a known shape without series in it; the text says why."""


def read_json(content: Content) -> Table:
    """Read JSON, or one JSON value a line, in one of the ``SHAPES``.

    Raises:
        ConfigError: it is no JSON, or of another shape.
    """
    values, lines = _values(content)
    value = values if lines else values[0]
    try:
        table = next((shaped for shape in SHAPES if (shaped := shape(value)) is not None), None)
    except WrongShape as error:
        raise ConfigError(f"{content.name}: {error}") from None
    if table is None:
        raise ConfigError(
            f"{content.name}: JSON in no shape that is read: should be records, an object of columns, pairs "
            "of time and value, numbers, or an answer of Prometheus or Graphite"
        )
    columns = [(known_name(name), _cells(content.name, name, cells)) for name, cells in table.columns.items()]
    rows = len(columns[0][1]) if columns else 0
    in_lines = lines is not None and len(lines) == rows
    return Table(
        content.name,
        named(content.name, columns),
        lines if lines is not None and in_lines else range(1, rows + 1),
        "line" if in_lines else "row",
        wide=table.sparse,
        assumed=table.assumed,
    )


def _values(content: Content) -> tuple[list[Any], list[int] | None]:
    """Return one value and None, or the values of all lines and the numbers of the lines."""
    text = content.text()
    try:
        return [orjson.loads(text)], None
    except orjson.JSONDecodeError as error:
        whole = error
    if not text.strip():
        raise ConfigError(f"{content.name}: empty")
    filled = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    values: list[Any] = []
    for number, line in filled:
        try:
            values.append(orjson.loads(line))
        except orjson.JSONDecodeError as error:
            if not values:
                raise ConfigError(f"{content.name}:{whole.lineno}: {_reason(whole)}") from None
            raise ConfigError(f"{content.name}:{number}: {_reason(error)}") from None
    return values, [number for number, _ in filled]


def _reason(error: orjson.JSONDecodeError) -> str:
    if error.doc[error.pos : error.pos + 3] in ("NaN", "nan"):
        return "not JSON: NaN, for which JSON has null"
    return f"not JSON: {error.msg.partition(': line')[0]}"


def _cells(file: str, name: str, cells: Sequence[Any]) -> Cells:
    if all(type(cell) in (int, float) for cell in cells):
        return np.array(cells, dtype=np.float64)
    for row, cell in enumerate(cells, start=1):
        if isinstance(cell, dict | list):
            raise ConfigError(f"{file}: row {row}: {name[:100]}: should be a number or a text")
    return [_text(cell) for cell in cells]


def _text(cell: str | float | None) -> str:
    if isinstance(cell, bool):
        return str(cell).lower()
    return "" if cell is None else cell if isinstance(cell, str) else repr(cell)


# Shapes


def _prometheus(value: Any) -> Shaped | None:
    """Read an answer of Prometheus to ``query_range`` or ``query``."""
    if not isinstance(value, dict) or "status" not in value or not {"data", "error"} & set(value):
        return None
    data = value.get("data")
    if value["status"] != "success" or not isinstance(data, dict):
        raise WrongShape(
            f"an answer of Prometheus without data: {str(value.get('error', value['status']))[:200]}"
        )
    result = data.get("result")
    if data.get("resultType") not in ("matrix", "vector") or not isinstance(result, list):
        raise WrongShape("an answer of Prometheus that holds no series; ask for query_range")
    series = [(_labels(entry), _samples(entry)) for entry in result]
    label = next(
        (entry for entry in ("service", "job") if series and all(entry in labels for labels, _ in series)), ""
    )
    columns: dict[str, list[Any]] = {"service": [], "metric": [], "timestamp": [], "value": []}
    for labels, samples in series:
        columns["metric"] += [_selector(labels, label)] * len(samples)
        columns["service"] += [labels.get(label)] * len(samples)
        columns["timestamp"] += [time for time, _ in samples]
        columns["value"] += [number for _, number in samples]
    if not label:
        del columns["service"]
    by_label = (f"service by the label {label}",) if label else ()
    return Shaped(columns, sparse=True, assumed=(*by_label, *_reservations(value, result)))


def _reservations(answer: Mapping[str, Any], result: Sequence[Any]) -> Iterator[str]:
    """Yield what an answer says against its own data, and what of them is left out.

    Thanos warns of stores that did not answer, VictoriaMetrics has ``isPartial`` for it.
    """
    if answer.get("isPartial"):
        yield "a partial answer (isPartial), which lacks data of some servers"
    for name in ("warnings", "infos"):
        texts = answer.get(name)
        if isinstance(texts, list) and texts:
            more = f" and {len(texts) - 1:,} more" if texts[1:] else ""
            yield f"an answer with {name}: {str(texts[0])[:200]!r}{more}"
    histograms = [entry["histograms"] for entry in result if entry.get("histograms")]
    if histograms:
        points = sum(len(points) for points in histograms if isinstance(points, list))
        yield f"without {counted(points, 'histogram')} of {len(histograms):,} series, beside their values"


def _labels(entry: Any) -> dict[str, str]:
    labels = entry.get("metric") if isinstance(entry, dict) else None
    if not isinstance(labels, dict) or not all(isinstance(text, str) for text in labels.values()):
        raise WrongShape("an answer of Prometheus with a series without labels")
    return labels


def _samples(entry: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    samples = entry.get("values", [entry["value"]] if "value" in entry else None)
    if samples is None:
        raise WrongShape("an answer of Prometheus with histograms; ask for a quantile or a rate of them")
    pairs = _pairs_of(samples)
    if pairs is None:
        raise WrongShape("an answer of Prometheus with samples that are no pairs of time and value")
    return pairs


def _selector(labels: Mapping[str, str], service: str) -> str:
    """Return the labels of a series in PromQL, without the label of its service."""
    matchers = ", ".join(
        f'{name}="{text}"' for name, text in sorted(labels.items()) if name not in ("__name__", service)
    )
    name = labels.get("__name__", "")
    return f"{name}{{{matchers}}}" if matchers else name or "value"


def _foreign(value: Any) -> None:
    """Refuse what other programs export, of which something else is read."""
    if isinstance(value, dict) and isinstance(value.get("results"), list):
        raise WrongShape("an answer of InfluxDB; ask for CSV (Accept: application/csv)")
    first = value[0] if isinstance(value, list) and value else value
    if isinstance(first, dict) and {"metric", "values", "timestamps"} <= first.keys():
        raise WrongShape("an export of VictoriaMetrics; ask for query_range")
    if isinstance(value, list) and isinstance(first, dict) and {"status", "data"} <= first.keys():
        raise WrongShape("several answers of Prometheus; give each one by itself")


def _graphite(value: Any) -> Shaped | None:
    """Read an answer of Graphite: targets with pairs of value and time."""
    if not isinstance(value, list) or not value:
        return None
    if not all(isinstance(target, dict) and {"target", "datapoints"} <= set(target) for target in value):
        return None
    columns: dict[str, list[Any]] = {"metric": [], "timestamp": [], "value": []}
    for target in value:
        pairs = _pairs_of(target["datapoints"])
        if pairs is None:
            raise WrongShape("an answer of Graphite with datapoints that are no pairs of value and time")
        columns["metric"] += [target["target"]] * len(pairs)
        columns["value"] += [number for number, _ in pairs]
        columns["timestamp"] += [time for _, time in pairs]
    return Shaped(columns, sparse=True)


def _object_of_columns(value: Any) -> Shaped | None:
    if (
        not isinstance(value, dict)
        or not value
        or not all(isinstance(column, list) for column in value.values())
    ):
        return None
    if len({len(column) for column in value.values()}) > 1:
        sizes = ", ".join(f"{name[:40]} {len(column):,}" for name, column in list(value.items())[:4])
        raise WrongShape(f"columns of different lengths: {sizes}")
    return Shaped(value)


def _records(value: Any) -> Shaped | None:
    records = [value] if isinstance(value, dict) else value
    if (
        not isinstance(records, list)
        or not records
        or not all(isinstance(record, dict) for record in records)
    ):
        return None
    if isinstance(value, dict) and any(isinstance(record, dict | list) for record in value.values()):
        return None
    names = dict.fromkeys(name for record in records for name in record)
    return Shaped({name: [record.get(name) for record in records] for name in names})


def _pairs(value: Any) -> Shaped | None:
    pairs = _pairs_of(value) if value else None
    if pairs is None:
        return None
    firsts, seconds = zip(*pairs, strict=True)
    if (
        _are_epochs(seconds)
        and not _are_epochs(firsts)
        and all(isinstance(first, int | float | None) for first in firsts)
    ):
        raise WrongShape("pairs whose second number is rather the time; write the time first")
    columns = {"timestamp": firsts, "value": seconds}
    return Shaped(columns, assumed=("pairs of time and value",))


def _are_epochs(numbers: Sequence[Any]) -> bool:
    """Return whether all are times of this century, in seconds or milliseconds."""
    return any(
        all(isinstance(number, int | float) and EARLIEST_S <= number / ticks < LATEST_S for number in numbers)
        for ticks in (1, 1000)
    )


def _numbers(value: Any) -> Shaped | None:
    if not isinstance(value, list) or any(isinstance(number, dict | list) for number in value):
        return None
    return Shaped({"value": value})


def _pairs_of(value: Any) -> list[tuple[Any, Any]] | None:
    """Return a list of lists of two values as pairs; None if the value is anything else."""
    if not isinstance(value, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        return None
    return [(first, second) for first, second in value]


SHAPES: Sequence[Callable[[Any], Shaped | None]] = (
    _prometheus,
    _foreign,
    _graphite,
    _object_of_columns,
    _records,
    _pairs,
    _numbers,
)
"""Readers of one shape each: they return columns, or None for another shape; the first match is used."""
