"""State of a tally from which another process can go on: open periods, and the names under each path."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipeline.files.validation import StrictModel

_Whole = Annotated[int, Field(ge=-(2**62), lt=2**62, strict=True)]
_Count = Annotated[int, Field(ge=0, lt=2**62, strict=True)]
_Text = Annotated[str, Field(strict=True, max_length=5000)]


class CellState(StrictModel):
    """The requests of one type in one period."""

    requests: _Count
    errors: _Count
    durations: tuple[tuple[_Whole, _Count], ...]  # bucket, requests
    statuses: dict[_Text, _Count]  # by the first digit


class PeriodState(StrictModel):
    """An open period."""

    period: _Whole  # its number since the epoch
    cells: dict[_Text, CellState]  # by type


class TallyState(StrictModel):
    """A tally's open periods, and the bound before which periods are closed.

    ``parts`` has pairs of a period's number and the number of parts of it that other tallies have sent.
    """

    host: _Text
    release: _Text
    periods: tuple[PeriodState, ...]
    parts: tuple[tuple[_Whole, _Count], ...]
    seen: tuple[_Text, ...]
    closed: _Whole
    is_begun: bool
    latest_s: float | None


class TypesState(StrictModel):
    """The types there are, and the names that were seen under each path."""

    types: tuple[_Text, ...]
    children: tuple[tuple[tuple[_Text, ...], tuple[_Text, ...]], ...]
