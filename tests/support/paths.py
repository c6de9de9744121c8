"""The repository's root, and the real data that may lie beside it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The repository."""

REAL_DATA = ROOT.parent / "shared" / "data"
"""Real series and profiles; tests that need them are skipped where they are not there."""
