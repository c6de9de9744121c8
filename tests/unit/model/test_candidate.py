"""A new field of a candidate is declared twice; a column in the store asks for a migration as well."""

from __future__ import annotations

from pathlib import Path

from tests.support.copies import run_with

EDITS = {
    "pipeline/model/candidate.py": {
        "    domains: tuple[DomainDecision, ...] = ()": (
            "    weight: float = 0.5\n    domains: tuple[DomainDecision, ...] = ()"
        )
    },
    "pipeline/messages/schema/scans.py": {
        "    domains: NotRequired[Several[DomainDecision] | None]\n": (
            "    weight: NotRequired[float]\n    domains: NotRequired[Several[DomainDecision] | None]\n"
        )
    },
}

PROGRAM = """
from pipeline.messages.ledger import entry_from_json, entry_from_row, entry_to_json
from pipeline.messages.ledger import ledger_columns, reported_entries
from pipeline.messages.scans import decode_scan, encode_scan
from pipeline.messages.schema.generate import message_schemas
from pipeline.model.errors import InvalidMessage
from pipeline.model import Candidate, Scan
from pipeline.storage.schema import COLUMNS, prepare

T0 = 1_760_000_000.0
found = Candidate("subroutine", "m", "short_term", T0, 1.0, 2.0, 0.0, 9.0, weight=0.25)
scan = Scan("s", "w", T0, T0, T0, T0, 2, (found,))
assert decode_scan(encode_scan(scan)) == scan
assert "weight" in message_schemas()["scan"]["$defs"]["Candidate"]["properties"]
(entry,) = reported_entries(scan)
columns = ledger_columns([entry])
assert columns["weight"] == [0.25] and COLUMNS["ledger"]["weight"] == "Float64"
prepare("ledger", columns)
row = {name: values[0] for name, values in columns.items()}
assert entry_from_row(row).candidate == entry_from_json(entry_to_json(entry)).candidate == found
try:
    decode_scan(encode_scan(scan).replace(b"0.25", b'"much"'))
except InvalidMessage as error:
    assert str(error) == "candidates[0].weight: should be a number, not a string", error
"""


def test_a_field_takes_two_files(tmp_path: Path) -> None:
    run_with(EDITS, PROGRAM, tmp_path)
