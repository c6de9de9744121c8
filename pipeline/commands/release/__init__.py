"""``smidgen release``: releases of a service held against each other."""

from pipeline.commands.release.command import release

__all__ = ["release"]
