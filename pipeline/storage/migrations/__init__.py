"""Numbered SQL files, applied in order."""
