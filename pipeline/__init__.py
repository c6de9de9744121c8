"""Smidgen's pipeline: stack samples in, one explained event per performance regression out."""

__version__ = "0.2.0"
