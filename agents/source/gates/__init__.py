"""Subroutines that a gate switches, read from Python source."""

from agents.source.gates.mapping import map_gates
from agents.source.gates.source import Module, read_module

__all__ = ["Module", "map_gates", "read_module"]
