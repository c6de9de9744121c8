"""``smidgen release``: comparison of a service's releases."""

from pipeline.commands.release.command import release

__all__ = ["release"]
