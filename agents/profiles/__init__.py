"""Profiles: formats of files, conversion, and the message that a sample becomes."""
