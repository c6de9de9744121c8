"""Label columns of a dataset's files: the senders of a row's samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.backtest.checks import compact
from pipeline.backtest.tables import Columns, Texts
from pipeline.model import FloatArray, IntArray
from pipeline.model.errors import ConfigError
from pipeline.model.strata import Stratum

OWN_COLUMNS = frozenset(
    ("service", "metric_kind", "metric", "timestamp", "samples", "total", "stack_id", "frames")
)
"""The files' own columns; no label may have one of these names."""

MOST_STRATA = 1_000
"""Most strata of a dataset that are counted separately."""

MOST_STRATUM_POINTS = 5 * 10**7
"""Largest matrix of totals, strata × windows: 400 MB."""

MOST_LABELS = 16
"""Label columns of a file."""

LONGEST_LABEL = 256
"""Characters of a label's name or value."""

OTHER = "(other)"
"""Value of every label of the stratum for all strata beyond ``MOST_STRATA``."""


@dataclass(frozen=True, slots=True)
class LabelColumns:
    """The labels of a file's rows."""

    names: tuple[str, ...]  # of the columns
    strata: tuple[Stratum, ...]  # distinct ones
    rows: IntArray  # (rows,) positions in ``strata``


def label_names(columns: Columns) -> tuple[str, ...]:
    """Return the names of a file's text columns that are labels."""
    return tuple(name for name in columns.names if name not in OWN_COLUMNS and columns.is_text(name))


def check_labels(columns: Columns, names: Sequence[str]) -> None:
    """Check that label columns are bounded.

    Raises:
        ConfigError: there are more than ``MOST_LABELS``, or a name or value is too long.
    """
    if len(names) > MOST_LABELS:
        raise ConfigError(f"{columns.path}: {len(names)} columns of labels are more than {MOST_LABELS}")
    for name in names:
        if len(name) > LONGEST_LABEL:
            raise ConfigError(f"{columns.path}: {name[:40]}…: name of more than {LONGEST_LABEL} characters")
        texts = columns.labels(name)
        for code, value in enumerate(texts.values):
            if len(value) > LONGEST_LABEL and code in texts.codes:
                row = int(np.flatnonzero(texts.codes == code)[0])
                columns.refuse(row, name, f"longer than {LONGEST_LABEL} characters")


def read_labels(columns: Columns, names: Sequence[str]) -> LabelColumns:
    """Read label columns; without any, every row has the stratum without labels."""
    cells = {name: columns.labels(name) for name in names}
    sizes = [len(texts.values) for texts in cells.values()]
    key, size = np.zeros(columns.table.num_rows, dtype=np.int64), 1
    used = np.zeros(1, dtype=np.int64)
    combinations = used[:, np.newaxis][:, :0]  # (distinct, columns) codes
    for texts, count in zip(cells.values(), sizes, strict=True):
        used, key = compact(key * count + texts.codes, size * count)
        combinations = np.column_stack([combinations[used // count], used % count])
        size = len(used)
    values = [texts.values for texts in cells.values()]
    strata = [
        _stratum({name: of[code] for name, of, code in zip(names, values, codes, strict=True)})
        for codes in combinations.tolist()
    ]
    row_of = {stratum: row for row, stratum in enumerate(dict.fromkeys(strata))}  # a dictionary may repeat
    return LabelColumns(tuple(names), tuple(row_of), np.array([row_of[s] for s in strata], np.int64)[key])


def label_columns(strata: Sequence[Stratum], rows: IntArray) -> dict[str, Texts]:
    """Return the label columns of rows, by their strata.

    Raises:
        ConfigError: a label has the name of another column.
    """
    names = sorted({name for stratum in strata for name, _ in stratum.labels})
    if taken := [name for name in names if name in OWN_COLUMNS or name in ("host", "release")]:
        raise ConfigError(f"label {taken[0]!r}: is the name of another column")
    columns = {"host": [stratum.host for stratum in strata]}  # always, so that strata are known to be there
    if any(stratum.release for stratum in strata):
        columns["release"] = [stratum.release for stratum in strata]
    for name in names:
        columns[name] = [dict(stratum.labels).get(name, "") for stratum in strata]
    texts = {}
    for name, values in columns.items():
        distinct, code = np.unique(np.array(values, dtype=object), return_inverse=True)
        texts[name] = Texts(code[rows], tuple(distinct.tolist()))
    return texts


def folded(
    strata: Sequence[Stratum], samples: FloatArray, windows: int
) -> tuple[tuple[Stratum, ...], IntArray]:
    """Return the strata to be kept apart, sorted, and which of them each stratum is: (strata,).

    Beyond ``MOST_STRATA``, or fewer if there are very many windows, those with the fewest samples are one
    stratum, the last one.
    """
    most = max(1, min(MOST_STRATA, MOST_STRATUM_POINTS // max(windows, 1)))
    order = sorted(range(len(strata)), key=lambda row: (-samples[row], strata[row]))
    separate = sorted(strata[row] for row in order[:most])
    if smallest := [strata[row] for row in order[most:]]:
        names = {name for stratum in smallest for name, _ in stratum.labels}
        host, release = (any(values) for values in zip(*((s.host, s.release) for s in smallest), strict=True))
        rest = Stratum.of(
            dict.fromkeys(names, OTHER), host=OTHER if host else "", release=OTHER if release else ""
        )
        separate = [*(stratum for stratum in separate if stratum != rest), rest]
    row_of = {stratum: row for row, stratum in enumerate(separate)}
    return tuple(separate), np.array([row_of.get(s, len(separate) - 1) for s in strata], dtype=np.int64)


def _stratum(labels: Mapping[str, str]) -> Stratum:
    """Return the stratum of a row's labels; empty labels are ignored."""
    further = {name: value for name, value in labels.items() if value and name not in ("host", "release")}
    return Stratum.of(further, host=labels.get("host", ""), release=labels.get("release", ""))
